"""The DuckDB file of a snapshot opens in earlier releases, for everybody at once, and answers the same everywhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse.contracts import TABLES
from warehouse.database import MOST_BYTES
from warehouse.home import Home
from warehouse.snapshots import Snapshot, required

PROJECT = Path(__file__).resolve().parent.parent
ASK = PROJECT / "tests" / "versions" / "ask.py"
NOBODY = 65534
# The same statement for each macro that takes a text.
_TEXTS = "(select distinct problem || chr(9) || '\"' || coalesce(runner, '') as text from runs union select chr({}))"
_PRINTED = "(select distinct primary_value::varchar as text from runs where primary_value is not null)"
_CASE = "(select runs.*, cases.correctness_key from runs join cases using (source, problem, workload_digest))"
QUESTIONS = {
    "manifest": "select run_id, manifest(run_id) as answer from runs",
    "run_document": "select run_id, run_document(runs) as answer from runs",
    "run_benchmark": "select run_id, run_benchmark(runs) as answer from runs",
    "run_external_id": "select run_id, run_external_id(runs) as answer from runs",
    "submission_number": "select run_id, submission_number(runs) as answer from runs",
    "comparison_key": f"select run_id, comparison_key(keyed) as answer from {_CASE} as keyed",
    "instant": "select run_id, instant(observed_at) as answer from runs",
    "nearest_integer": "select run_id, nearest_integer(mean_ns) as answer from runs",
    "digest": "select digest(run_id) as answer from runs",
    "jcs_number": "select run_id, jcs_number(primary_value) as a, jcs_number(std_ns) as b, jcs_number(-1e-5) as c, "
    "jcs_number(2.5e20) as d from runs",
    "jcs_member": "select jcs_member('name', run_id) as answer from runs",
    "jcs_plain": "select jcs_plain(run_id) as answer from runs",
    "jcs_string": f"select jcs_string(text) as answer from {_TEXTS.format(31)}",
    "jcs_printed": f"select jcs_printed(text) as answer from {_PRINTED}",
    "jcs_exponent": f"select jcs_exponent(text || 'e-07') as a, jcs_exponent(text || 'e-05') as b from {_PRINTED}",
    "jcs_fraction": f"select jcs_fraction(text || 'e-05', '0.0000') as answer from {_PRINTED}",
    "jcs_whole": f"select jcs_whole(text || 'e+16') as answer from {_PRINTED}",
}

# As a user who is not root: opens a file as if to write, says how that went, and stays until told to go.
PLAIN_OPEN = """
import os, sys, duckdb
if os.getuid() == 0:
    os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
try:
    connection = duckdb.connect(sys.argv[1])
    try:
        connection.execute("create table mine (a int)")
        how = "writes"
    except duckdb.Error:
        how = "reads"
except (duckdb.Error, PermissionError):
    how = "refused"
print(how, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def snapshot(small_home_folder: Path) -> Snapshot:
    return required(Home(small_home_folder))


@pytest.fixture(scope="module")
def questions(snapshot: Snapshot) -> dict[str, str]:
    """A question to each table, view and macro that the file has."""
    with snapshot.open() as connection:
        views = _names(connection, "select view_name from duckdb_views() where not internal")
        macros = _names(
            connection, "select function_name from duckdb_functions() where not internal and function_type = 'macro'"
        )
    asked = {**{name: f'from "{name}"' for name in (*TABLES, *views)}, **QUESTIONS}
    for name in macros:
        if match := re.fullmatch(r"jcs_escape_?(\w*)", name):
            code = int(match[1], 16) if re.fullmatch(r"[0-9a-f]{2}", match[1]) else 10
            asked[name] = f"select {name}(text) as answer from {_TEXTS.format(code or 1)}"
    assert macros | views <= asked.keys(), "a view or macro is asked nothing"
    assert asked.keys() - set(TABLES) == macros | views
    return asked


@pytest.fixture(scope="module")
def answers(snapshot: Snapshot, questions: dict[str, str]) -> dict[str, Any]:
    return _ask(Path(sys.executable), snapshot, questions)


@pytest.mark.parametrize("version", ["1.1", "1.4"])
def test_an_earlier_release_answers_every_view_and_macro_as_ours_does(
    version: str, snapshot: Snapshot, questions: dict[str, str], answers: dict[str, Any]
) -> None:
    python = PROJECT / f".venv-duckdb-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"there is no DuckDB {version}: 'make versions' installs it in {python.parent.parent}")
    earlier = _ask(python, snapshot, questions)
    assert earlier.pop("version").startswith(f"{version}.")
    ours = {name: answer for name, answer in answers.items() if name != "version"}
    assert earlier == ours
    assert all(rows for name, (rows, _) in ours.items() if name in QUESTIONS)


def test_the_file_has_the_oldest_storage_version(snapshot: Snapshot) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{snapshot.database}' as published (read_only)")
        tags = connection.execute("select tags from duckdb_databases() where database_name = 'published'").fetchall()
    assert tags == [({"storage_version": "v1.0.0+"},)]


def test_the_file_has_no_index_and_no_constraint_but_that_columns_are_never_null(snapshot: Snapshot) -> None:
    with snapshot.open() as connection:
        assert connection.execute("select count(*) from duckdb_indexes()").fetchall() == [(0,)]
        kinds = connection.execute("select distinct constraint_type from duckdb_constraints()").fetchall()
    assert kinds == [("NOT NULL",)]


def test_a_run_is_found_by_its_digest(snapshot: Snapshot) -> None:
    with snapshot.open() as connection:
        ((digest, run_id),) = connection.execute("select run_digest, run_id from runs where run_digest is not null "
                                                 "order by run_id limit 1").fetchall()  # fmt: skip
        found = connection.execute("select run_id from run_lookup where run_digest = ?", [digest]).fetchall()
        assert (run_id,) in found
        # Sorted, so that a look-up reads the few row groups whose bounds hold the digest.
        stored = [row[0] for row in connection.execute("select run_digest from run_lookup").fetchall()]
        missing = "from runs anti join run_lookup using (run_digest) where run_digest is not null"
        assert connection.execute(missing).fetchall() == []
    assert stored == sorted(stored)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"])
def test_the_query_of_the_readme_makes_every_run_digest_in_any_time_zone(snapshot: Snapshot, zone: str) -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    (query,) = [block for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL) if "manifest(" in block]
    with duckdb.connect(str(snapshot.database), read_only=True) as connection:
        connection.execute(f"set timezone = '{zone}'")
        ((runs,),) = connection.execute("select count(*) from runs where run_digest is not null").fetchall()
        assert connection.execute(query).fetchall() == [(True, runs)]
    assert runs > 100


def test_a_run_document_is_stored_nowhere(snapshot: Snapshot) -> None:
    with snapshot.open() as connection:
        ((document,),) = connection.execute(
            "select manifest(run_id) from runs where run_digest is not null order by run_id limit 1"
        ).fetchall()
        assert '"kind":"BenchmarkRun"' in document
        for name, table in TABLES.items():
            texts = [column.name for column in table.columns if column.type == "VARCHAR"]
            if texts:
                holds = " or ".join(f'contains("{column}", \'"BenchmarkRun"\')' for column in texts)
                assert connection.execute(f'select count(*) from "{name}" where {holds}').fetchall() == [(0,)], name


def test_our_connections_have_a_memory_limit_and_reach_nothing_else(snapshot: Snapshot) -> None:
    with snapshot.open() as connection, duckdb.connect(config={"memory_limit": f"{MOST_BYTES} bytes"}) as limited:
        limit = "select current_setting('memory_limit')"
        assert connection.execute(limit).fetchall() == limited.execute(limit).fetchall()
        with pytest.raises(duckdb.Error, match=r"disabled|not allowed|Cannot access"):
            connection.execute("select * from read_text('/etc/hostname')")
        with pytest.raises(duckdb.Error, match="read-only"):
            connection.execute("create table mine (a int)")


@pytest.fixture
def open_to_all(snapshot: Snapshot) -> Iterator[Snapshot]:
    """The snapshot's file, in a folder that every user may look into, with the modes of a published snapshot."""
    folder = Path(tempfile.mkdtemp(prefix="kernelmart-"))
    try:
        shutil.copy2(snapshot.database, folder)
        assert snapshot.database.stat().st_mode & 0o777 == 0o444
        assert snapshot.folder.stat().st_mode & 0o777 == 0o555
        folder.chmod(0o555)
        yield Snapshot(folder)
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_a_plain_open_by_another_user_locks_nobody_out(open_to_all: Snapshot) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLAIN_OPEN, open_to_all.database, str(NOBODY)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            said = other.stdout.readline().split()
            with open_to_all.open() as connection:
                ((runs,),) = connection.execute("select count(*) from runs").fetchall()
        finally:
            other.stdin.close()
    assert other.returncode == 0
    assert runs > 100
    # Root could write; whoever else opens the file as if to write is refused, or reads as all do.
    assert said in (["refused"], ["reads"])
    assert [path.name for path in open_to_all.folder.iterdir()] == [open_to_all.database.name]


def _ask(python: Path, snapshot: Snapshot, questions: dict[str, str]) -> dict[str, Any]:
    ended = subprocess.run(
        [python, ASK, snapshot.database], input=json.dumps(questions), capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    answers: dict[str, Any] = json.loads(ended.stdout)
    return answers


def _names(connection: duckdb.DuckDBPyConnection, statement: str) -> set[str]:
    return {name for (name,) in connection.execute(statement).fetchall()}
