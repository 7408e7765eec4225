"""The Parquet files of a snapshot are as services need them: sorted, indexed, and the same to every reader."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from assets.kernelbot.facts import facts_revision
from tests.small_snapshot import case_result, publish, small_results
from warehouse.contracts import PARQUET_ONLY, RANKING_POLICY, SCHEMA_VERSION, TABLES, Table
from warehouse.home import Home
from warehouse.parquet import ROW_GROUP_ROWS, write_parquet
from warehouse.snapshots import Snapshot, published, required
from warehouse.texts import write_texts

LOOKED_UP = {"run_id", "run_digest", "implementation_digest", "submission_key"}
# Bytes of a text that pyarrow still takes as a page's bound.
LONGEST_BOUND = 4096
# What Spark has a type of its own for, as Parquet names it: physical and logical type.
SPARK_TYPES = {
    ("BYTE_ARRAY", "String"),
    ("INT64", "None"),
    ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, "
              "force_set_converted_type=false)"),
    ("DOUBLE", "None"),
    ("BOOLEAN", "None"),
}  # fmt: skip
every_table = pytest.mark.parametrize("table", list(TABLES.values()), ids=lambda table: table.name)


@pytest.fixture(scope="module")
def snapshot(small_home_folder: Path) -> Snapshot:
    return required(Home(small_home_folder))


@every_table
def test_every_column_is_compressed_with_zstd_and_has_a_page_index(table: Table, snapshot: Snapshot) -> None:
    for chunk in _chunks(snapshot, table):
        assert chunk.compression == "ZSTD"
        assert chunk.has_offset_index, chunk.path_in_schema
        # Bounds of texts too long for statistics are left out; nobody filters on such JSON.
        long = chunk.path_in_schema not in {*table.sort, *LOOKED_UP} and chunk.total_uncompressed_size > LONGEST_BOUND
        assert chunk.has_column_index or long, chunk.path_in_schema


@every_table
def test_what_rows_are_looked_up_by_has_bloom_filters_and_nothing_else_has(table: Table, snapshot: Snapshot) -> None:
    for chunk in _chunks(snapshot, table):
        assert (chunk.bloom_filter_offset is not None) == (chunk.path_in_schema in LOOKED_UP), chunk.path_in_schema


@pytest.mark.parametrize("table", list(PARQUET_ONLY.values()), ids=lambda table: table.name)
def test_files_of_texts_have_them_too_and_equal_rows_give_equal_bytes(table: Table, tmp_path: Path) -> None:
    schema = table.arrow_schema()
    batch = pa.RecordBatch.from_pydict({name: [str(number).encode() for number in range(9)] for name in schema.names})
    for name in ("a", "b"):
        write_texts(tmp_path / name, [batch.slice(0, 5).cast(schema), batch.slice(5).cast(schema)], schema)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for chunk in _chunks_of(tmp_path / "a"):
        assert chunk.has_offset_index
        # Nobody filters on a text.
        assert chunk.has_column_index == (chunk.path_in_schema in table.sort)
        assert (chunk.bloom_filter_offset is not None) == (chunk.path_in_schema in LOOKED_UP)


@every_table
def test_rows_are_in_the_order_that_each_file_declares(table: Table, snapshot: Snapshot) -> None:
    for path in snapshot.parquet(table.name):
        with pq.ParquetFile(path) as file:
            names, metadata = file.schema_arrow.names, file.metadata
            for number in range(metadata.num_row_groups):
                declared = metadata.row_group(number).sorting_columns
                assert [names[column.column_index] for column in declared] == list(table.sort)
                assert not any(column.descending or column.nulls_first for column in declared)
            keys = [_key(row, table) for row in file.read(columns=list(table.sort)).to_pylist()]
        assert all(before <= after for before, after in pairwise(keys))


def test_services_find_runs_by_source_problem_and_board() -> None:
    assert TABLES["runs"].sort[:4] == ("source", "problem", "comparison_key", "primary_value")
    assert TABLES["measurements"].sort[0] == "run_id"
    assert TABLES["ranks"].sort[:2] == ("comparison_key", "rank")
    assert TABLES["run_lookup"].sort[0] == "run_digest"


@pytest.mark.parametrize("name", ["runs", "measurements"])
def test_the_large_tables_have_a_part_for_each_source_and_problem(name: str, snapshot: Snapshot) -> None:
    runs = pq.read_table(snapshot.folder / "parquet" / "runs", columns=["run_id", "source", "problem"]).to_pylist()
    where = {row["run_id"]: (row["source"], row["problem"]) for row in runs}
    found: dict[tuple[str, str], str] = {}
    for path in snapshot.parquet(name):
        parts = {where[run_id] for run_id in pq.read_table(path, columns=["run_id"])["run_id"].to_pylist()}
        if not parts:
            continue
        (part,) = parts
        assert found.setdefault(part, path.name) == path.name
        assert path.name.startswith(part[0])
    assert len(found) > 5
    assert name != "runs" or set(found) == set(where.values())


@every_table
def test_a_file_says_which_table_and_versions_it_is_of_and_no_time(table: Table, snapshot: Snapshot) -> None:
    assert snapshot.parquet(table.name)
    for path in snapshot.parquet(table.name):
        metadata = {key.decode(): value.decode() for key, value in pq.read_metadata(path).metadata.items()}
        assert metadata.pop("ARROW:schema")
        assert metadata == {
            "kernelmart.table": table.name,
            "kernelmart.schema_version": SCHEMA_VERSION,
            "kernelmart.ranking_policy": RANKING_POLICY,
            "kernelmart.facts_revision": facts_revision(),
        }


@every_table
def test_four_readers_read_equal_values(table: Table, snapshot: Snapshot) -> None:
    paths, schema = snapshot.parquet(table.name), table.arrow_schema().remove_metadata()
    expected = pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths])
    read = {
        "duckdb": duckdb.read_parquet([str(path) for path in paths], hive_partitioning=False).to_arrow_table(),
        "polars": pl.read_parquet(paths, hive_partitioning=False).to_arrow(),
        "pandas": pa.Table.from_pandas(
            pd.concat([pd.read_parquet(path, dtype_backend="pyarrow", partitioning=None) for path in paths]),
            preserve_index=False,
        ),
    }
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    rows = expected.cast(plain).to_pylist()
    assert len(rows) == snapshot.manifest["tables"][table.name]["rows"]
    for reader, found in read.items():
        assert found.column_names == list(table.names), reader
        assert found.cast(plain).to_pylist() == rows, reader
    assert pd.read_parquet(paths[0], partitioning=None).columns.tolist() == list(table.names)


@every_table
def test_every_type_is_one_that_spark_reads(table: Table, snapshot: Snapshot) -> None:
    for path in snapshot.parquet(table.name):
        with pq.ParquetFile(path) as file:
            columns = [file.schema.column(number) for number in range(len(file.schema))]
            # What pyarrow restores of its own types is the contract's, to the unit and the zone.
            assert [field.type for field in file.schema_arrow] == [field.type for field in table.arrow_schema()]
        for column in columns:
            assert (column.physical_type, str(column.logical_type)) in SPARK_TYPES
            # A list's rows are three levels deep, the inmost called element.
            assert column.path in (column.path.split(".")[0], f"{column.path.split('.')[0]}.list.element")
            assert not set(column.name) & set(" ,;{}()\n\t=")


def test_a_value_is_found_among_others_that_share_a_long_beginning(tmp_path: Path) -> None:
    beginning = "gpumode-kernelbot:" + "é" * 200 + "/"
    values = [f"{beginning}{number:06}" for number in range(2 * ROW_GROUP_ROWS + 100)]
    schema = pa.schema([pa.field("run_id", pa.string()), pa.field("number", pa.int64())])
    rows = pa.table({"run_id": values, "number": range(len(values))}, schema=schema)
    path = tmp_path / "long.parquet"
    write_parquet(path, rows.to_batches(), schema, sort=("run_id",), bloom_filters=("run_id",))
    assert pq.read_metadata(path).num_row_groups == 3
    for number in (0, ROW_GROUP_ROWS - 1, ROW_GROUP_ROWS, 2 * ROW_GROUP_ROWS + 99, None):
        value = f"{beginning}x" if number is None else values[number]
        expected = [] if number is None else [number]
        asked = duckdb.execute("select number from read_parquet(?) where run_id = ?", [str(path), value]).fetchall()
        assert [row[0] for row in asked] == expected
        assert pl.scan_parquet(path).filter(pl.col("run_id") == value).collect()["number"].to_list() == expected
        assert ds.dataset(path).to_table(filter=ds.field("run_id") == value)["number"].to_pylist() == expected
        assert pd.read_parquet(path, filters=[("run_id", "==", value)])["number"].tolist() == expected


def test_a_part_that_did_not_change_is_the_same_file_as_in_the_snapshot_before(tmp_path: Path) -> None:
    home = publish(tmp_path)
    publish(tmp_path, [*small_results(), case_result(31000, 0, 4000000.0, "2025-06-05T00:00:00")])
    first, second = published(home)
    before, after = _parts(first), _parts(second)
    same = {name for name in before.keys() & after.keys() if before[name].read_bytes() == after[name].read_bytes()}
    assert {name.split("/")[0] for name in same} >= {"runs", "measurements", "problems", "protocols", "sources"}
    assert all(before[name].samefile(after[name]) for name in same)
    # The board that has one run more is a part of its own.
    assert len(before.keys() - same) > 3
    assert not any(path.stat().st_mode & 0o222 for path in after.values())


def _parts(snapshot: Snapshot) -> dict[str, Path]:
    return {f"{path.parent.name}/{path.name}": path for path in (snapshot.folder / "parquet").glob("*/*.parquet")}


def _chunks(snapshot: Snapshot, table: Table) -> Iterator[Any]:
    """Metadata of every column of every row group of a table."""
    for path in snapshot.parquet(table.name):
        yield from _chunks_of(path)


def _chunks_of(path: Path) -> Iterator[Any]:
    metadata = pq.read_metadata(path)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield from (group.column(column) for column in range(group.num_columns))


def _key(row: dict[str, Any], table: Table) -> tuple[Any, ...]:
    """Sort key of a row: by bytes, nulls last."""
    return tuple((value is None, value if value is not None else 0) for value in (row[name] for name in table.sort))
