"""The published tables are those of the contract, each column described, and no change of them goes unnoticed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import duckdb
import pytest

from warehouse.contracts import ARROW_TYPES, PARQUET_ONLY, RESULTS, SCHEMA_VERSION, SCORES, TABLES, Table
from warehouse.identity import digest

CONFORMANCE = os.environ.get("KERNELMART_CONFORMANCE")
ALL = [*TABLES.values(), *PARQUET_ONLY.values(), RESULTS, SCORES]
# Digest of all names, types and nullabilities, with the schema version that they belong to. A new column is a new minor
# version; a column that goes away, or gets another name or type, is a new major version with a note on how to move.
SNAPSHOT = ("1.1.0", "sha256:a83bb18126075ac6d87fa9d952f13adb8be41b143a87a45d6e1424371ed933da")
# Beyond what the shared schema states, which a minor version may add.
ADDED = {"artifacts": ["declared_leaderboard", "declared_gpus"]}


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_a_tables_definition_makes_the_columns_that_its_arrow_schema_has(table: Table) -> None:
    with duckdb.connect() as connection:
        connection.execute(table.ddl())
        described = connection.execute(f'describe "{table.name}"').fetchall()
        assert [(name, kind, null == "YES") for name, kind, null, *_ in described] == [
            (column.name, {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(column.type, column.type), column.nullable)
            for column in table.columns
        ]
        comments = connection.execute(
            "select column_name, comment from duckdb_columns() where not internal order by column_index"
        ).fetchall()
        assert comments == [(column.name, column.description) for column in table.columns]
        assert connection.execute("select comment from duckdb_tables()").fetchall() == [(table.description,)]
        arrow = connection.sql(f'from "{table.name}"').to_arrow_table()
    schema = table.arrow_schema()
    assert arrow.cast(schema).schema.names == schema.names == list(table.names)
    assert [field.type for field in schema] == [ARROW_TYPES[column.type] for column in table.columns]
    assert table.empty().num_rows == 0


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_a_table_and_its_columns_are_described_and_named_by_convention(table: Table) -> None:
    assert re.fullmatch(r"[A-Z].+\.", table.description)
    assert len(set(table.names)) == len(table.names)
    for column in table.columns:
        assert column.description.strip() == column.description != ""
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        schema_field = table.arrow_schema().field(column.name)
        assert schema_field.metadata == {b"description": column.description.encode()}
        assert schema_field.nullable == column.nullable
        if column.name.endswith("_at"):
            assert column.type == "TIMESTAMPTZ"
        if column.name.endswith(("_bytes", "_days")):
            assert column.type == "BIGINT"
        if column.name.endswith(("_ns", "_s", "_ms")):
            assert column.type == "DOUBLE"
        if column.name.endswith(("_digest", "_key", "_id")) and column.name != "submission_id":
            assert column.type == "VARCHAR"
    assert set(table.sort) | set(table.looked_up) | set(table.volatile) <= set(table.names)


@pytest.mark.parametrize("table", [*TABLES.values(), *PARQUET_ONLY.values()], ids=lambda table: table.name)
def test_a_published_table_has_a_key_that_is_never_null_and_an_order_that_is_total(table: Table) -> None:
    assert table.key
    assert not [column.name for column in table.columns if column.key and column.nullable]
    assert set(table.key) <= set(table.sort)
    for column in table.columns:
        if column.references:
            assert column.references in TABLES


@pytest.mark.skipif(not CONFORMANCE, reason="KERNELMART_CONFORMANCE is not set")
def test_the_tables_are_those_of_the_shared_schema() -> None:
    text = Path(str(CONFORMANCE), "schema.md").read_text(encoding="utf-8")
    stated = {match[1]: match[2] for match in re.finditer(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", text, re.MULTILINE)}
    assert set(TABLES) == set(stated)
    nullable_beyond = set()
    for name, table in TABLES.items():
        # What stands in brackets explains: values, columns of other tables.
        columns = stated[name]
        while (shorter := re.sub(r"\([^()]*\)", "", columns)) != columns:
            columns = shorter
        marks = {column: "?" in piece for piece in columns.split("·") for column in re.findall(r"`(\w+)`", piece)}
        assert list(table.names) == [*marks, *ADDED.get(name, [])], name
        marks |= dict.fromkeys(ADDED.get(name, []), True)
        nullable_beyond |= {
            (name, column.name) for column in table.columns if column.nullable and not marks[column.name]
        }
        assert not [column.name for column in table.columns if marks[column.name] and not column.nullable], name
    # Null for one rank, as the words beside it say, where none of a cohort's runs has a time, and where no author is.
    assert nullable_beyond == {
        ("ranks", "percentile"), ("cohorts", "first_observed_at"), ("cohorts", "last_observed_at"),
        ("artifact_families", "first_author_key"),
    }  # fmt: skip


def test_no_column_changes_without_a_new_schema_version() -> None:
    described = [
        [table.name, [[column.name, column.type, column.nullable, column.key] for column in table.columns]]
        for table in TABLES.values()
    ]
    assert (SCHEMA_VERSION, digest(json.dumps(described))) == SNAPSHOT
