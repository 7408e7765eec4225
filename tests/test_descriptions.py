"""A snapshot describes itself in two forms that others' libraries accept, and by which they read it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import mlcroissant
import numpy
import pandas
import pyarrow.parquet as pq
import pytest
from frictionless import Package

from tests.conftest import SmallHome
from tests.small_snapshot import publish
from warehouse.contracts import SCHEMA_VERSION, TABLES
from warehouse.croissant import croissant
from warehouse.datapackage import datapackage
from warehouse.files import sha256
from warehouse.home import Home
from warehouse.snapshots import Snapshot, required

# The readers' own use of what their libraries are about to drop.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

_SOURCE = {
    "name": "A board",
    "url": "https://example.org/board",
    "license": "Terms of the board",
    "attribution": "The board's people",
    "terms": "Name them.",
}
_ROW = {
    "snapshot_id": "20250601T000000Z-ABCDEF01",
    "created_at": datetime(2025, 6, 1, tzinfo=UTC),
    "content_digest": "sha256:" + "a" * 64,
}


@pytest.fixture(scope="module")
def snapshot(small_home: SmallHome) -> Snapshot:
    return required(Home(small_home.home))


def described(snapshot: Snapshot, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((snapshot.folder / name).read_text(encoding="utf-8"))
    return found


def parquet_rows(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    return [row for path in snapshot.parquet(table) for row in pq.read_table(path, partitioning=None).to_pylist()]


def test_croissant_readers_accept_the_description_without_an_error_or_a_warning(snapshot: Snapshot) -> None:
    dataset = mlcroissant.Dataset(jsonld=snapshot.folder / "croissant.json")
    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    assert [record_set.uuid for record_set in dataset.metadata.record_sets] == list(TABLES)
    for record_set in dataset.metadata.record_sets:
        table = TABLES[record_set.uuid]
        assert [field.name for field in record_set.fields] == list(table.names)
        assert [field.description for field in record_set.fields] == [column.description for column in table.columns]
        assert record_set.key == [f"{table.name}/{name}" for name in table.key]


def test_a_croissant_reader_gets_the_runs_that_the_parquet_files_have(snapshot: Snapshot) -> None:
    table = "runs"
    records = mlcroissant.Dataset(jsonld=snapshot.folder / "croissant.json").records(table)
    found = [{name.removeprefix(f"{table}/"): _plain(value) for name, value in record.items()} for record in records]
    expected = parquet_rows(snapshot, table)
    assert len(expected) > 50
    assert sorted(found, key=lambda row: str(row["run_id"])) == sorted(expected, key=lambda row: str(row["run_id"]))


@pytest.mark.parametrize("table", ["ranks", "records", "measurements", "cases", "cohorts"])
def test_a_croissant_reader_gets_each_row_of_a_table_with_references_once(known_home: Path, table: str) -> None:
    known = required(Home(known_home))
    records = mlcroissant.Dataset(jsonld=known.folder / "croissant.json").records(table)
    found = [[_plain(record[f"{table}/{name}"]) for name in TABLES[table].key] for record in records]
    assert sorted(found) == sorted([row[name] for name in TABLES[table].key] for row in parquet_rows(known, table))


def _plain(value: Any) -> Any:
    """A value as Parquet has it, of one that went through pandas."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, pandas.Timestamp):
        return value.to_pydatetime()
    return value.item() if isinstance(value, numpy.generic) else value


def test_the_croissant_description_names_every_parquet_file_with_its_digest(snapshot: Snapshot) -> None:
    files = [one for one in described(snapshot, "croissant.json")["distribution"] if one["@type"] == "cr:FileObject"]
    assert {one["contentUrl"] for one in files} == {
        path.relative_to(snapshot.folder).as_posix() for path in snapshot.folder.rglob("*.parquet")
    }
    for one in files:
        path = snapshot.folder / one["contentUrl"]
        assert (one["sha256"], one["contentSize"]) == (sha256(path), f"{path.stat().st_size} B")


def test_the_terms_of_every_source_are_in_both_descriptions(snapshot: Snapshot) -> None:
    sources = parquet_rows(snapshot, "sources")
    assert len(sources) == 2
    first, second = described(snapshot, "croissant.json"), described(snapshot, "datapackage.json")
    for place, source in enumerate(sources):
        assert first["license"][place] == {
            "@type": "sc:CreativeWork", "name": source["license"], "description": source["terms"], "url": source["url"]
        }  # fmt: skip
        assert source["attribution"] in first["citeAs"]
        assert second["licenses"][place] == {"title": source["license"], "path": source["url"]}
        assert second["sources"][place] == {"title": source["name"], "path": source["url"]}
    manifest = snapshot.manifest
    assert manifest["content_digest"] in first["citeAs"]
    assert (second["id"], second["name"]) == (manifest["content_digest"], manifest["snapshot_id"].lower())


def test_frictionless_readers_accept_the_data_package(snapshot: Snapshot) -> None:
    package = Package.from_descriptor(described(snapshot, "datapackage.json"))
    assert list(Package.metadata_validate(package.to_descriptor())) == []
    assert package.resource_names == list(TABLES)
    for resource in package.resources:
        table = TABLES[str(resource.name)]
        assert resource.schema.field_names == list(table.names)
        assert resource.schema.primary_key == list(table.key)
        assert sorted(str(path) for path in resource.paths) == sorted(
            path.relative_to(snapshot.folder).as_posix() for path in snapshot.parquet(table.name)
        )
        for reference in resource.schema.foreign_keys:
            target = TABLES[reference["reference"]["resource"]]
            assert set(reference["reference"]["fields"]) <= set(target.names)
            assert len(reference["fields"]) == len(reference["reference"]["fields"])


def test_a_data_package_says_types_keys_and_references() -> None:
    package = datapackage(
        _ROW, {"ranks": ["ranks.parquet"], "runs": ["a.parquet", "b.parquet"], "cases": []}, [_SOURCE]
    )
    assert package["name"] == "20250601t000000z-abcdef01"
    assert (package["version"], package["created"]) == (SCHEMA_VERSION, "2025-06-01T00:00:00+00:00")
    assert [resource["name"] for resource in package["resources"]] == ["runs", "ranks"]
    runs, ranks = (resource["schema"] for resource in package["resources"])
    assert package["resources"][0]["path"] == ["a.parquet", "b.parquet"]
    assert ranks["primaryKey"] == ["policy", "run_id"]
    assert ranks["foreignKeys"] == [{"fields": ["run_id"], "reference": {"resource": "runs", "fields": ["run_id"]}}]
    # What it refers to has no files here.
    assert runs["foreignKeys"] == []
    types = {field["name"]: (field["type"], field["constraints"]["required"]) for field in ranks["fields"]}
    assert types["author_rank"] == ("integer", False)
    assert types["gap_to_best"] == ("number", True)
    assert types["tied"] == ("boolean", True)
    assert {field["name"]: field["type"] for field in runs["fields"]}["flags"] == "array"


def test_references_go_to_the_column_of_that_name_or_to_the_key() -> None:
    assert TABLES["records"].foreign_keys() == [
        ("runs", ("run_id",), ("run_id",)),
        ("runs", ("previous_run_id",), ("run_id",)),
    ]
    assert ("source_files", ("content_digest", "locator"), ("content_digest", "locator")) in TABLES[
        "runs"
    ].foreign_keys()
    for table in TABLES.values():
        for target, fields, targets in table.foreign_keys():
            kinds = {column.name: column.type for column in TABLES[target].columns}
            here = {column.name: column.type for column in table.columns}
            assert [here[name] for name in fields] == [kinds[name] for name in targets]


def test_a_table_of_one_file_is_read_from_it_and_one_of_several_from_their_set() -> None:
    files = {path: {"sha256": "0" * 64, "size_bytes": 1} for path in ("a.parquet", "b.parquet", "ranks.parquet")}
    made = croissant(_ROW, {"runs": ["a.parquet", "b.parquet"], "ranks": ["ranks.parquet"]}, files, [_SOURCE])
    assert [one["@id"] for one in made["distribution"]] == ["a.parquet", "b.parquet", "ranks.parquet", "files-of-runs"]
    assert made["distribution"][-1]["includes"] == "parquet/runs/*.parquet"
    runs, ranks = made["recordSet"]
    run_id = next(field for field in ranks["field"] if field["name"] == "run_id")
    assert run_id["source"] == {"fileObject": {"@id": "ranks.parquet"}, "extract": {"column": "run_id"}}
    assert run_id["references"] == {"fileSet": {"@id": "files-of-runs"}, "extract": {"column": "run_id"}}
    fields = {field["name"]: field for field in runs["field"]}
    assert {field["dataType"] for field in runs["field"]} == {
        "sc:Text", "cr:Int64", "cr:Float64", "sc:Boolean", "sc:DateTime"
    }  # fmt: skip
    assert (fields["flags"]["isArray"], fields["flags"]["arrayShape"]) == (True, "-1")
    # A reader that joins by a part of a key would give rows twice.
    assert "references" not in fields["workload_digest"]
    assert "references" not in fields["source"]


def test_the_same_content_is_described_alike_but_for_the_snapshots_name_and_time(
    known_home: Path, tmp_path: Path
) -> None:
    texts: list[list[str]] = []
    for home in (Home(known_home), publish(tmp_path)):
        snapshot = required(home)
        created = described(snapshot, "datapackage.json")["created"]
        row = next(path for path in snapshot.parquet("snapshot"))
        own = (snapshot.snapshot_id, snapshot.snapshot_id.lower(), created, row.name, sha256(row))
        texts.append([])
        for file in ("croissant.json", "datapackage.json"):
            text = (snapshot.folder / file).read_text(encoding="utf-8")
            for word in own:
                text = text.replace(word, "-")
            texts[-1].append(text)
    assert texts[0] == texts[1]


def test_every_published_table_and_column_carries_its_comment(known_home: Path) -> None:
    with duckdb.connect(str(required(Home(known_home)).database), read_only=True) as connection:
        tables = dict(connection.execute("select table_name, comment from duckdb_tables()").fetchall())
        columns = connection.execute(
            "select table_name, column_name, comment from duckdb_columns() where table_name in "
            "(select table_name from duckdb_tables()) order by table_name, column_index"
        ).fetchall()
    assert tables == {table.name: table.description for table in TABLES.values()}
    assert columns == [
        (table.name, column.name, column.description)
        for table in sorted(TABLES.values(), key=lambda table: table.name)
        for column in table.columns
    ]
