"""`kernelmart sql`, `path`, `status`, `snapshots` and `check`, and what the command line itself costs."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.commands import as_json, printed, refused, run, table
from tests.small_snapshot import BOARD, HOSTILE, PUBLISHED, run_id
from warehouse.contracts import PARQUET_ONLY, TABLES

HOSTILE_NAME = "select author_name from authors where author_id = '666'"


def test_sql_prints_a_table(known_home: Path) -> None:
    page = printed(known_home, "sql", "select status, count(*) as runs, 1e-7 as x from runs group by all order by all")
    assert table(page, "status") == [["incorrect", "1", "1e-7"], ["passed", "11", "1e-7"]]


def test_sql_prints_rows_of_many_columns_one_below_the_other(known_home: Path) -> None:
    page = printed(
        known_home, "sql", "from runs where problem = 'amd-mixture-of-experts' order by primary_value limit 1"
    )
    assert ["status", "passed"] in [line.split() for line in page.splitlines()]
    assert ["primary_value", "4109150"] in [line.split() for line in page.splitlines()]


def test_a_leaderboard_of_sql_is_a_table(known_home: Path) -> None:
    text = "select rank, problem, \"case\", value from leaderboard where problem = 'amd-mixture-of-experts' limit 1"
    assert table(printed(known_home, "sql", text), "rank") == [["1", "amd-mixture-of-experts", "0", "4109150"]]


def test_sql_takes_one_statement(known_home: Path) -> None:
    for text in ("", "select 1; select 2", "/* nothing */"):
        assert "one statement is wanted" in refused(known_home, "sql", text)


def test_sql_prints_json_with_every_digit(known_home: Path) -> None:
    text = printed(known_home, "sql", "select primary_value as v, flags, observed_at as at, null as n from runs "
                   "where runner = 'B200' and source = 'gpumode-kernelbot'", "--format", "json")  # fmt: skip
    assert '{"v": 0.000010048658277929109, "flags": [], "at": "2026-01-01T00:00:00.000Z", "n": null}' in text
    assert json.loads(text)[0]["v"] == 1.0048658277929109e-05
    assert json.loads(printed(known_home, "sql", "from runs limit 0", "--format", "json")) == []
    assert json.loads(printed(known_home, "sql", "select 1 as a, 2 as a", "--format", "json")) == [{"a": 1, "a_1": 2}]


def test_sql_prints_csv(known_home: Path) -> None:
    text = printed(
        known_home, "sql", "select 'a,\"b' as t, null as n, true as b, [1, 2] as l, 0.1 as x", "--format", "csv"
    )
    assert list(csv.reader(io.StringIO(text))) == [["t", "n", "b", "l", "x"], ['a,"b', "", "true", "[1, 2]", "0.1"]]


def test_sql_makes_hostile_text_visible_but_gives_files_the_text_itself(known_home: Path) -> None:
    assert r"\x1b[31mred\x1b[0m \u202e[bold]right" in printed(known_home, "sql", HOSTILE_NAME)
    assert json.loads(printed(known_home, "sql", HOSTILE_NAME, "--format", "json")) == [{"author_name": HOSTILE}]
    assert list(csv.reader(io.StringIO(run(known_home, "sql", HOSTILE_NAME, "--format", "csv").stdout)))[1] == [HOSTILE]
    assert r"\x1b[2Jx" in printed(known_home, "sql", 'select 1 as "\x1b[2Jx"')


def test_sql_cuts_what_no_terminal_takes(known_home: Path) -> None:
    page = printed(known_home, "sql", "select range as n from range(1500)")
    assert page.splitlines()[-1] == "the first 1000 rows; --format csv or json gives all"
    assert len(table(page, "n")) == 1001
    assert len(printed(known_home, "sql", "from range(1500)", "--format", "csv").splitlines()) == 1501


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("from nowhere", "Table with name nowhere does not exist!"),
        ("selec 1", 'syntax error at or near "selec"'),
        ("delete from kernelmart.main.runs", "read-only"),
        ("create table x as select 1", "read-only"),
        ("copy runs to 'out.csv'", "file system operations are disabled"),
        ("from read_csv('/etc/passwd')", "file system operations are disabled"),
        ("attach 'other.duckdb'", "file system operations are disabled"),
        ("set enable_external_access = true", "configuration has been locked"),
        ("select error('\x1b[2Jboo')", r"\x1b[2Jboo"),
    ],
)
def test_sql_refuses_in_one_line(known_home: Path, text: str, says: str) -> None:
    assert says in refused(known_home, "sql", text)
    assert len(run(known_home, "sql", text).stderr.splitlines()) == 1


def test_sql_without_rows_says_so(known_home: Path) -> None:
    assert printed(known_home, "sql", "select 1 as one limit 0").split("\n")[-2] == "no rows"
    assert "Invalid value for '--format'" in refused(known_home, "sql", "select 1", "--format", "xml", code=2)


def test_path_names_the_snapshots_folder_and_never_the_link(known_home: Path) -> None:
    folder = Path(printed(known_home, "path").strip())
    assert folder.parent == known_home / "snapshots"
    assert folder.name == as_json(known_home, "status")["snapshot"]["snapshot_id"]
    assert printed(known_home, "path", "duckdb").strip() == str(folder / "kernelmart.duckdb")
    files = printed(known_home, "path", "runs").strip()
    assert len(duckdb.connect().read_parquet(files).fetchall()) == 12
    assert refused(known_home, "path", "run", code=2).startswith("there is no table 'run'; there are duckdb, runs, ")


def test_status_says_what_the_last_ingest_saw(small_home_folder: Path) -> None:
    found = as_json(small_home_folder, "status")
    assert found["snapshot"]["snapshot_id"] == found["snapshot_id"]
    assert set(found["sources"]) == {"gpumode-kernelbot", "sol-execbench"}
    page = printed(small_home_folder, "status")
    assert page.count("State         fresh") == 2
    assert found["snapshot"]["content_digest"] in page


def test_status_of_an_empty_home_says_what_to_do(tmp_path: Path) -> None:
    assert refused(tmp_path, "status") == (f"{tmp_path}: nothing has been ingested yet; run 'kernelmart ingest' first")


def test_snapshots_are_listed_once_each_with_their_rows(known_home: Path) -> None:
    found = as_json(known_home, "snapshots", "list")["snapshots"]
    assert [(row["latest"], row["rows"]["runs"]) for row in found] == [(True, 12)]
    assert set(found[0]["rows"]) == {*TABLES, *PARQUET_ONLY}
    rows = table(printed(known_home, "snapshots", "list"), "snapshot")
    assert [(row[0], row[1], row[-1]) for row in rows] == [(found[0]["snapshot_id"], "latest", "12")]


def test_a_snapshot_that_is_as_published_is_said_to_be(known_home: Path) -> None:
    snapshot = as_json(known_home, "status")["snapshot"]["snapshot_id"]
    text = printed(known_home, "snapshots", "verify")
    assert text.startswith(f"{snapshot}: all ")
    assert printed(known_home, "snapshots", "verify", snapshot) == text
    assert refused(known_home, "snapshots", "verify", "other") == (
        f"{known_home}: there is no snapshot other; 'kernelmart snapshots list' lists them"
    )


def test_a_flipped_bit_is_found_and_named(known_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(known_home, home, symlinks=True)
    file = next(Path(printed(home, "path").strip()).glob("parquet/ranks/*.parquet"))
    file.parent.chmod(0o755)
    file.chmod(0o644)
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    result = run(home, "snapshots", "verify")
    assert result.exit_code == 1
    assert result.stdout == f"{file}: its bytes are not those that were published\n"
    assert result.stderr == f"Error: {home}: 1 published file damaged; ingest again, or restore\n"


def test_checks_pass_on_a_snapshot_that_was_ingested(small_home_folder: Path) -> None:
    lines = printed(small_home_folder, "check", "--all").splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "warning"}
    assert any(line.startswith("ok      run_digests: ") for line in lines)


def test_a_check_that_finds_something_blocking_fails(known_home: Path) -> None:
    # The snapshot was put together by hand: its problems' documents are not those that their digests name.
    result = run(known_home, "check")
    assert result.exit_code == 1
    assert "failed  document_digests: " in result.stdout
    assert "ok      run_digests: " in result.stdout
    assert result.stderr.startswith("Error: the latest snapshot fails document_digests")


def test_a_damaged_database_is_one_line(known_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(known_home, home, symlinks=True)
    database = Path(printed(home, "path", "duckdb").strip())
    database.parent.chmod(0o755)
    database.unlink()
    database.write_bytes(b"no database")
    line = refused(home, "show", PUBLISHED)
    assert line.startswith(f"{database}: ")
    assert line.endswith("'kernelmart snapshots verify' says whether it is damaged")


def test_reading_imports_neither_dagster_nor_polars() -> None:
    text = (
        "import sys; from click.testing import CliRunner; from pipelines.cli import main; "
        "before = {'duckdb', 'rich', 'pydantic'} & set(sys.modules); "
        f"CliRunner().invoke(main, ['show', '{BOARD}', '--home', 'nowhere']); "
        "print(sorted(before), sorted({'dagster', 'polars', 'requests'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


def test_the_home_may_be_named_by_the_environment(known_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from pipelines.cli import main

    monkeypatch.setenv("KERNELMART_HOME", str(known_home))
    result = CliRunner().invoke(main, ["show", run_id(29858)])
    assert result.exit_code == 0
    assert f"kernelmart top {BOARD}\n" in result.stdout
