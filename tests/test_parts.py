"""Parts are named by what they are made from, and are there whole or not at all."""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path

import pyarrow as pa
import pytest

from warehouse.database import connect
from warehouse.parts import Part, PartStore, part_key

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
ROWS = pa.table({"a": [1, 2], "b": ["x", None]}, schema=SCHEMA)


def make(store: PartStore, key: str, rows: pa.Table = ROWS) -> Part:
    with store.making("stage", key, {"about": "x"}) as writer:
        assert writer.write("rows", rows, SCHEMA) == rows.num_rows
        assert writer.write("batches", iter(rows.to_batches()), SCHEMA) == rows.num_rows
    found = store.find("stage", key)
    assert found is not None
    return found


def test_a_part_holds_its_tables_and_what_was_said_of_it(tmp_path: Path) -> None:
    part = make(PartStore(tmp_path), "k1")
    assert part.folder == tmp_path / "stage" / "k1"
    assert part.read("rows").equals(ROWS)
    assert part.read("batches").equals(ROWS)
    digests = {name: hashlib.sha256(part.path(name).read_bytes()).hexdigest() for name in ("rows", "batches")}
    assert part.facts == {"about": "x", "rows": {"rows": 2, "batches": 2}, "sha256": digests}
    assert sorted(path.name for path in part.folder.iterdir()) == ["batches.parquet", "part.json", "rows.parquet"]


def test_duckdb_sees_every_nan_of_a_part(tmp_path: Path) -> None:
    values = pa.table({"a": [0, 1, 2], "x": [math.nan, 0.5, -1.0]})
    store = PartStore(tmp_path)
    with store.making("stage", "k", {}) as writer:
        writer.write("rows", values, values.schema)
    # With the smallest and largest value in the file, which leave NaN out, DuckDB takes it that there is none.
    found = connect().execute(
        "select a, isnan(x), case when not isnan(x) and x > 0 then x end from read_parquet($path) order by a",
        {"path": str(Part(tmp_path / "stage" / "k").path("rows"))},
    )
    assert found.fetchall() == [(0, True, None), (1, False, 0.5), (2, False, None)]


def test_what_is_learnt_while_making_a_part_is_recorded(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    facts: dict[str, object] = {}
    with store.making("stage", "k", facts):
        facts["rejects"] = [1, 2]
    part = store.find("stage", "k")
    assert part is not None
    assert part.facts == {"rejects": [1, 2], "rows": {}, "sha256": {}}


def test_a_part_whose_making_fails_is_not_there(tmp_path: Path) -> None:
    store = PartStore(tmp_path)

    def broken() -> None:
        with store.making("stage", "k1", {}) as writer:
            writer.write("rows", ROWS, SCHEMA)
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        broken()
    assert store.find("stage", "k1") is None
    assert list((tmp_path / "stage").iterdir()) == []


def test_a_part_is_replaced_when_it_is_made_again(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    make(store, "k1")
    assert make(store, "k1", ROWS.slice(1)).read("rows").num_rows == 1


@pytest.mark.parametrize("damage", [b"", b"PAR1", None])
def test_a_part_that_is_no_longer_what_was_written_does_not_count(tmp_path: Path, damage: bytes | None) -> None:
    store = PartStore(tmp_path)
    path = make(store, "k1").path("rows")
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content if damage is None else damage)
    assert store.find("stage", "k1") is None
    path.unlink()
    assert store.find("stage", "k1") is None
    assert make(store, "k1").read("rows").equals(ROWS)


@pytest.mark.parametrize("record", [b"{}", b"[]", b"{", b'{"sha256": 5}'])
def test_a_part_whose_record_is_damaged_does_not_count(tmp_path: Path, record: bytes) -> None:
    store = PartStore(tmp_path)
    (make(store, "k1").folder / "part.json").write_bytes(record)
    assert store.find("stage", "k1") is None


def test_a_part_without_its_record_does_not_count(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    part = make(store, "k1")
    (part.folder / "part.json").unlink()
    assert store.find("stage", "k1") is None
    assert part.facts == {}
    assert store.find("other", "k1") is None


def test_parts_that_nothing_has_used_for_days_are_removed(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    for key in ("k1", "k2", "k3"):
        about = make(store, key).folder / "part.json"
        os.utime(about, (0, 0) if key != "k3" else None)
    assert store.find("stage", "k2") is not None
    store.prune(7)
    assert sorted(path.name for path in (tmp_path / "stage").iterdir()) == ["k2", "k3"]


def test_a_key_changes_with_anything_that_a_part_is_made_from() -> None:
    inputs = ([{"locator": "a", "content_digest": "sha256:1"}], "parser/1")
    key = part_key(*inputs)
    assert len(key) == 32
    assert set(key) <= set("0123456789abcdef")
    assert part_key([{"content_digest": "sha256:1", "locator": "a"}], "parser/1") == key
    others = [
        part_key([{"locator": "a", "content_digest": "sha256:2"}], "parser/1"),
        part_key([{"locator": "b", "content_digest": "sha256:1"}], "parser/1"),
        part_key(inputs[0], "parser/2"),
        part_key(*inputs, None),
        part_key("parser/1", inputs[0]),
    ]
    assert len({key, *others}) == 6
