"""Rows in order: as a sort of all of them at once gives them, however few fit into memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse import sorting

_VALUES = {
    "text": st.none() | st.sampled_from(["", "a", "ab", "b", "\x00", "é", "𝛼", "~"]),
    "number": st.none() | st.sampled_from([0.0, 1.5, -1.5, 1e308, math.inf, -math.inf, math.nan]),
    "instant": st.none() | st.integers(-(2**62), 2**62),
}
_SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.float64()),
        ("instant", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("item", pa.int64()),
    ]
)
KEYS = ("text", "number", "instant", "item")


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in _VALUES}
    tags = [[row["text"] or "none"] * (place % 3) for place, row in enumerate(rows)]
    arrays = [
        *(pa.array(columns[name], _SCHEMA.field(name).type) for name in _VALUES),
        pa.array(tags, pa.list_(pa.string())),
        pa.array(range(len(rows)), pa.int64()),
    ]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _pieces(folder: Path, table: pa.Table, files: int, where: pc.Expression | None = None) -> list[sorting.Piece]:
    paths = [folder / f"{number}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        chosen = table.take(pa.array(range(number, table.num_rows, files), pa.int64()))
        pq.write_table(chosen, path, row_group_size=5)
    return sorting.pieces_of(paths, where)


@given(
    rows=st.lists(st.fixed_dictionaries(_VALUES), max_size=60), files=st.integers(1, 3), at_once=st.sampled_from([1, 7])
)
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_as_one_sort_of_all_has_them(
    rows: list[dict[str, Any]], files: int, at_once: int, tmp_path: Path
) -> None:
    table = _table(rows)
    pieces = _pieces(tmp_path, table, files)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorting, "ROWS_AT_ONCE", at_once)
        found = [*sorting.in_order(pieces, _SCHEMA.names, KEYS, tmp_path / "spilled")]
    expected = table.take(pc.sort_indices(table, sort_keys=[(key, "ascending", "at_end") for key in KEYS]))
    made = pa.concat_tables([_SCHEMA.empty_table(), *found])
    assert made["item"].to_pylist() == expected["item"].to_pylist()
    for name in ("text", "tags", "instant"):
        assert made[name].combine_chunks().equals(expected[name].combine_chunks())
    assert not [*(tmp_path / "spilled").glob("*")]


def test_the_order_is_that_of_the_database(tmp_path: Path) -> None:
    rows = [{"text": t, "number": n, "instant": None} for t in ("b", None, "~", "é", "") for n in (2.0, None, -0.5)]
    pieces = _pieces(tmp_path, _table(rows), 2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorting, "ROWS_AT_ONCE", 4)
        found = pa.concat_tables(sorting.in_order(pieces, _SCHEMA.names, KEYS, tmp_path / "spilled"))
    files = [str(path) for path in tmp_path.glob("*.parquet")]
    order = ", ".join(f"{key} nulls last" for key in KEYS)
    expected = duckdb.execute(f"select item from read_parquet(?) order by {order}", [files]).fetchall()
    assert [(item,) for item in found["item"].to_pylist()] == expected


def test_only_rows_that_are_meant_are_there(tmp_path: Path) -> None:
    rows = [{"text": text, "number": float(n), "instant": n} for n in range(20) for text in ("a", "b", None)]
    pieces = _pieces(tmp_path, _table(rows), 2, where=pc.field("text") == "b")
    for at_once in (1000, 8):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sorting, "ROWS_AT_ONCE", at_once)
            found = [*sorting.in_order(pieces, ["number", "text"], ["number"], tmp_path / "spilled")]
        assert pa.concat_tables(found).to_pylist() == [{"number": float(n), "text": "b"} for n in range(20)]


def test_no_more_rows_than_asked_for_are_held_at_once(tmp_path: Path) -> None:
    """Of rows that come in order, which a sample divides best, buckets are as large as they may be."""
    rows = [{"text": "a", "number": float(n), "instant": n} for n in range(4_000)]
    pieces = _pieces(tmp_path, _table(rows), 1)
    held: list[int] = []
    whole = sorting._whole

    def noted(tables: Any) -> pa.Table:
        made = whole(tables)
        held.append(made.num_rows)
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorting, "ROWS_AT_ONCE", 500)
        patched.setattr(sorting, "_SAMPLE", 16)
        patched.setattr(sorting, "_whole", noted)
        found = pa.concat_tables(sorting.in_order(pieces, _SCHEMA.names, ["number"], tmp_path / "spilled"))
    assert found["number"].to_pylist() == [float(n) for n in range(4_000)]
    assert max(held) <= 600
