"""What the checks of the contract find in tables that contradict it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from assets import checks
from warehouse import snapshots
from warehouse.home import Home


@pytest.fixture
def tables(known_home: Path, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of a sound snapshot, to be spoilt."""
    copy = tmp_path / "tables.duckdb"
    shutil.copy(snapshots.required(Home(known_home)).database, copy)
    with duckdb.connect(str(copy)) as connection:
        yield connection


def _found(tables: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    [check] = [check for check in checks.all_checks() if check.name == name]
    return checks.run(tables, check)


def test_a_sound_snapshot_has_no_key_twice_and_no_reference_to_nothing(tables: duckdb.DuckDBPyConnection) -> None:
    assert _found(tables, "keys_unique") == []


def test_a_key_that_is_there_twice_is_named(tables: duckdb.DuckDBPyConnection) -> None:
    [(run_id, policy)] = tables.execute("select run_id, policy from ranks order by all limit 1").fetchall()
    for table in ("runs", "ranks"):
        tables.execute(f"insert into {table} select * from {table} where run_id = $1", [run_id])
    assert set(_found(tables, "keys_unique")) == {
        f"runs: 2 rows have the key ('{run_id}',)",
        f"ranks: 2 rows have the key ('{policy}', '{run_id}')",
    }


def test_a_row_that_refers_to_nothing_is_named_with_what_it_refers_to(tables: duckdb.DuckDBPyConnection) -> None:
    before = set(_found(tables, "references_whole"))
    [(lost,)] = tables.execute("select min(submission_key) from runs").fetchall()
    tables.execute("delete from submissions where submission_key = $1", [lost])
    assert f"runs: submissions has no row for ('{lost}',)" in set(_found(tables, "references_whole")) - before
