"""Parquet files of texts: sorted, in small row groups, one text found with little read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.texts import find_text, grouped, merged, write_texts

SCHEMA = pa.schema([("key", pa.string()), ("text", pa.string())])


def rows_of(path: Path) -> list[tuple[str, str]]:
    return [tuple(row.values()) for row in pq.read_table(path, partitioning=None).to_pylist()]


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    assert write_texts(path, grouped(((*row, len(row[1])) for row in rows), SCHEMA), SCHEMA, {"a": "b"}) == len(rows)
    return path


def test_row_groups_are_about_a_megabyte_and_a_large_text_has_its_own(tmp_path: Path) -> None:
    rows = [(f"k{number:05}", "x" * 10_000) for number in range(300)] + [("l", "y" * 5_000_000), ("m", "z")]
    path = write(tmp_path / "texts.parquet", rows)
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert sizes == [105, 105, 91, 1]
    assert rows_of(path) == rows
    assert pq.read_schema(path).metadata[b"a"] == b"b"


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    rows = [(f"k{number}", "text") for number in range(9)]
    assert write(tmp_path / "a", rows).read_bytes() == write(tmp_path / "b", rows).read_bytes()


def test_one_text_is_found_by_its_key(tmp_path: Path) -> None:
    paths = [
        write(
            tmp_path / f"{part}.parquet",
            [(f"sha256:{part}{number:063x}", f"{part}{number}" * 2000) for number in range(400)],
        )
        for part in "ab"
    ]
    found = find_text(paths, f"sha256:b{123:063x}", "text")
    assert found is not None
    assert found.as_py() == "b123" * 2000
    assert find_text(paths, f"sha256:b{400:063x}", "text") is None
    assert find_text([], "x", "text") is None


def test_files_are_merged_in_order_and_each_key_once(tmp_path: Path) -> None:
    first = write(tmp_path / "1", [("a", "1"), ("c", "1"), ("e", "1")])
    second = write(tmp_path / "2", [("b", "2"), ("c", "2"), ("f", "2")])
    rows = [tuple(row.values()) for batch in merged([first, second]) for row in batch.to_pylist()]
    assert rows == [("a", "1"), ("b", "2"), ("c", "1"), ("e", "1"), ("f", "2")]


def test_a_file_of_no_texts_is_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "none", [])
    assert rows_of(path) == []
    assert list(merged([path])) == []
