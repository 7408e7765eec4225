"""Files are written whole or not at all, and equal rows give equal bytes."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse import files, parquet
from warehouse.parquet import ROW_GROUP_ROWS

SCHEMA = pa.schema([("name", pa.string()), ("value", pa.float64()), ("tags", pa.list_(pa.string()))])


class StopError(Exception):
    """What stops a write half way."""


def everything(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def rows(count: int) -> pa.Table:
    values = range(count)
    return pa.table(
        {
            "name": [None if i % 7 == 0 else f"name {i % 1000}" for i in values],
            "value": [None if i % 11 == 0 else i / 3 for i in values],
            "tags": [None if i % 5 == 0 else ["t"] * (i % 3) for i in values],
        },
        schema=SCHEMA,
    )


def batches(table: pa.Table, size: int) -> list[pa.RecordBatch]:
    return list(table.combine_chunks().to_batches(max_chunksize=size))


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "a.txt"
    with files.writing(path) as aside:
        aside.write_bytes(b"new")
        assert not path.exists()
        assert aside.parent == path.parent
    assert path.read_bytes() == b"new"
    assert everything(tmp_path) == ["deep", "deep/folder", "deep/folder/a.txt"]


@pytest.mark.parametrize("error", [StopError, KeyboardInterrupt, GeneratorExit])
def test_a_write_that_stops_leaves_the_old_content_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    files.write_bytes(path, b"old")

    def write() -> None:
        with files.writing(path) as aside:
            aside.write_bytes(b"half of the ne")
            raise error

    with pytest.raises(error):
        write()
    assert (everything(tmp_path), path.read_bytes()) == (["a.txt"], b"old")


def test_a_writer_that_writes_nothing_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), files.writing(tmp_path / "a.txt"):
        pass
    assert everything(tmp_path) == []


def test_an_object_is_published_under_a_name_known_at_the_end(tmp_path: Path) -> None:
    with files.writing_object(tmp_path) as (aside, publish):
        aside.write_bytes(b"abc")
        publish(tmp_path / "ab" / "abc")
    with files.writing_object(tmp_path) as (aside, _):
        aside.write_bytes(b"never published")
    assert everything(tmp_path) == ["ab", "ab/abc"]


def test_a_folder_appears_with_all_its_files_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "part"
    with files.writing_folder(target) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "a").write_bytes(b"1")
        assert not target.exists()
    assert everything(target) == ["deep", "deep/a"]

    def write() -> None:
        with files.writing_folder(tmp_path / "other") as folder:
            (folder / "a").write_bytes(b"1")
            raise StopError

    with pytest.raises(StopError):
        write()
    assert everything(tmp_path) == ["part", "part/deep", "part/deep/a"]


def test_json_is_written_for_people_with_sorted_keys(tmp_path: Path) -> None:
    files.write_json(tmp_path / "a.json", {"b": "é", "a": [1]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "a": [\n    1\n  ],\n  "b": "é"\n}\n'
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "a.json", {"a": {1}})
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"a": [1], "b": "é"}
    assert everything(tmp_path) == ["a.json"]


def test_equal_rows_give_equal_bytes_however_they_come_in(tmp_path: Path) -> None:
    table = rows(2 * ROW_GROUP_ROWS + 1000)
    sliced = pa.concat_tables([table.slice(0, 3), table]).slice(3)
    ways: list[list[pa.RecordBatch]] = [
        batches(table, len(table)),
        batches(table, ROW_GROUP_ROWS),
        batches(table, 10_007),
        batches(sliced, 50_021),
        [batch for batch in batches(table, 999) for batch in (batch.slice(0, 0), batch)],
    ]
    contents = set()
    for number, way in enumerate(ways):
        path = tmp_path / f"{number}.parquet"
        assert parquet.write_parquet(path, way, SCHEMA, sort=("name",), metadata={"b": "2", "a": "1"}) == len(table)
        contents.add(path.read_bytes())
    assert len(contents) == 1
    read = pq.read_table(tmp_path / "0.parquet")
    assert read.equals(table)
    metadata = pq.ParquetFile(tmp_path / "0.parquet").metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert groups == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 1000]


def test_a_file_says_what_it_is_how_it_is_sorted_and_where_values_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = rows(10)
    parquet.write_parquet(
        path, batches(table, 4), SCHEMA, sort=("name",), metadata={"about": "x"}, bloom_filters=("name",)
    )
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert pq.read_schema(path).metadata == {b"about": b"x"}
    assert [(column.column_index, column.descending) for column in group.sorting_columns] == [(0, False)]
    assert group.column(0).compression == "ZSTD"
    assert group.column(0).has_column_index
    with duckdb.connect() as connection:
        text = "select path_in_schema from parquet_metadata($path) where bloom_filter_offset is not null"
        assert connection.execute(text, {"path": str(path)}).fetchall() == [("name",)]
    plain = tmp_path / "b.parquet"
    parquet.write_parquet(plain, batches(table, 4), SCHEMA)
    assert len(pq.ParquetFile(plain).metadata.row_group(0).sorting_columns) == 0


def test_a_table_of_no_rows_has_its_schema(tmp_path: Path) -> None:
    for number, none in enumerate(([], batches(rows(1).slice(0, 0), 1), [rows(3).to_batches()[0].slice(3)])):
        path = tmp_path / f"{number}.parquet"
        assert parquet.write_parquet(path, none, SCHEMA) == 0
        assert pq.read_table(path).equals(SCHEMA.empty_table())
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_rows_are_cast_to_the_schema_of_the_file(tmp_path: Path) -> None:
    given = pa.table({"name": pa.array(["a"], pa.large_string()), "value": [1], "tags": pa.nulls(1)})
    parquet.write_parquet(tmp_path / "a.parquet", given.to_batches(), SCHEMA)
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [{"name": "a", "value": 1.0, "tags": None}]


def test_rows_that_stop_coming_leave_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_parquet(path, batches(rows(3), 3), SCHEMA)
    before = path.read_bytes()

    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(rows(ROW_GROUP_ROWS + 5), ROW_GROUP_ROWS)
        raise StopError

    with pytest.raises(StopError):
        parquet.write_parquet(path, broken(), SCHEMA)
    assert (everything(tmp_path), path.read_bytes()) == (["a.parquet"], before)


def test_a_null_where_none_may_be_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("name", pa.string(), nullable=False)])
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        parquet.write_parquet(tmp_path / "a.parquet", pa.table({"name": ["a", None]}).to_batches(), strict)
    assert everything(tmp_path) == []


def test_leftovers_of_dead_processes_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"1")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / f"{files.ASIDE}1").write_bytes(b"half")
    folder = tmp_path / "deep" / f"{files.ASIDE}2"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / f"{files.ASIDE}3").write_bytes(b"half")
    (folder / "inside").chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert {path.name for path in files.remove_leftovers(tmp_path)} >= {f"{files.ASIDE}1", f"{files.ASIDE}2"}
    assert everything(tmp_path) == ["deep", "kept"]
    assert files.remove_leftovers(tmp_path) == []
    assert files.remove_leftovers(tmp_path / "missing") == []


def test_a_published_folder_can_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    (folder / "parquet").mkdir(parents=True)
    (folder / "parquet" / "a").write_bytes(b"1")
    for path in (folder / "parquet" / "a", folder / "parquet", folder):
        path.chmod(0o444 if path.is_file() else 0o555)
    files.remove_tree(folder)
    files.remove_tree(folder)
    assert everything(tmp_path) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda path: files.write_bytes(path, b"x"),
        lambda path: files.write_json(path, {}),
        lambda path: parquet.write_parquet(path, batches(rows(1), 1), SCHEMA),
    ],
)
def test_a_place_that_cannot_be_written_to_is_an_error(tmp_path: Path, write: Callable[[Path], Any]) -> None:
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(OSError, match="file"):
        write(tmp_path / "file" / "a")
    assert everything(tmp_path) == ["file"]
