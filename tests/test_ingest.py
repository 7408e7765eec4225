"""Whole ingests of generated corpora: what comes out, what a bad source does, and what stays the same."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets import checks
from assets.kernelbot.facts import boards_as_documents
from pipelines.ingest import Outcome, ingest
from pipelines.resources import Request
from replica.corpus import Corpus, hostile_text
from tests.conftest import SmallHome
from tests.oracle import read as oracle_read
from warehouse import files, snapshots
from warehouse.codes import CODES
from warehouse.contracts import TABLES
from warehouse.errors import KernelmartError
from warehouse.home import Home
from warehouse.raw import RawStore


def run(home: Path, folder: Path, *sources: str) -> Outcome:
    # What shrinks is looked at in tests of its own.
    return ingest(Home(home), Request(folder=str(folder), sources=list(sources), accept_loss=True))


def rows(home: Path, text: str) -> list[Any]:
    with snapshots.required(Home(home)).open() as connection:
        return connection.execute(text).fetchall()


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "pipelines.cli", *words, "--home", str(home))
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="session")
def corpus(small_home: SmallHome) -> Corpus:
    return small_home.corpus


@pytest.fixture(scope="session")
def home(small_home: SmallHome) -> Path:
    """A home with the corpus in it; tests that change it take a copy."""
    return small_home.home


@pytest.fixture
def copies(home: Path, corpus: Corpus, tmp_path: Path) -> tuple[Path, Path]:
    """A home and a folder of saved files that a test may change."""
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    shutil.copytree(corpus.folder, tmp_path / "saved")
    return tmp_path / "home", tmp_path / "saved"


def test_every_file_has_the_counts_that_the_generator_says(home: Path, corpus: Corpus) -> None:
    found = {
        (source, locator): counts
        for source, locator, *counts in rows(
            home, "select source, locator, rows_read, rows_kept, rows_duplicate, rows_rejected from source_files"
        )
    }
    wanted = {
        key: [counts.rows_read, counts.rows_kept, counts.rows_duplicate, counts.rows_rejected]
        for key, counts in corpus.files.items()
    }
    assert found == wanted


def test_every_odd_row_has_the_fate_that_the_generator_says(home: Path, corpus: Corpus) -> None:
    rejected: dict[tuple[object, object], object] = {
        (locator, item): reason for locator, item, reason in rows(home, "select locator, item, reason from rejects")
    }
    runs: dict[tuple[object, object], list[Any]] = {}
    text = "select locator, item, run_id, eligible, ineligible_reasons, flags from runs order by run_id"
    for locator, item, *row in rows(home, text):
        runs.setdefault((locator, item), []).append(tuple(row))
    assert len(corpus.expectations) > 300
    for expected in corpus.expectations:
        key = (expected.locator, expected.item)
        said = f"{key}: {expected.note}"
        if expected.outcome == "rejected":
            assert rejected.get(key) == expected.reason, said
        elif expected.outcome == "duplicate":
            assert key not in runs, said
        elif expected.run_ids is not None:
            assert [row[0] for row in runs.get(key, [])] == sorted(expected.run_ids), said
            for _, eligible, reasons, flags in runs.get(key, []):
                assert expected.eligible is None or eligible == expected.eligible, said
                assert expected.reasons is None or reasons == expected.reasons, said
                assert set(expected.flags) <= {flag.split(":")[0] for flag in flags}, said


def test_every_run_is_what_the_plain_implementation_makes_of_it(home: Path, corpus: Corpus) -> None:
    oracle = oracle_read(corpus.folder, {"boards": boards_as_documents()})
    names = [
        "run_id", "source", "submission_key", "problem", "mode", "status", "runner", "gpu", "architecture",
        "case_index", "workload_digest", "problem_digest", "implementation_digest", "protocol_digest",
        "environment_digest", "run_digest", "identity", "comparison_key", "primary_metric", "primary_statistic",
        "primary_unit",
        "primary_value", "sample_count", "mean_ns", "min_ns", "max_ns", "std_ns", "eligible", "ineligible_reasons",
        "external_id",
    ]  # fmt: skip
    found = {
        str(row[0]): dict(zip(names, row, strict=True)) for row in rows(home, f"select {', '.join(names)} from runs")
    }
    # It looks at no user's name, and so takes a row whose name is not UTF-8.
    broken = rows(home, "select locator, item from rejects where reason = 'BAD_TEXT'")
    wanted = {
        row["run_id"]: {name: row[name] for name in names}
        for row in oracle["runs"]
        if (row["locator"], row["item"]) not in broken
    }
    assert found.keys() == wanted.keys()
    differing = [(wanted[key], found[key]) for key in wanted if wanted[key] != found[key]]
    assert differing == []


def test_every_check_passes_over_every_row(home: Path) -> None:
    with snapshots.required(Home(home)).open() as connection:
        found = {check.name: checks.run(connection, check, every=1) for check in checks.all_checks() if check.blocking}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_night_when_nothing_changed_publishes_nothing(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = snapshots.required(Home(home)).snapshot_id
    outcome = run(home, saved)
    assert (outcome.published, outcome.snapshot_id) == (False, before)
    assert len(snapshots.published(Home(home))) == 1


def test_the_content_does_not_depend_on_the_folder_the_home_or_the_order_of_rows(
    home: Path, corpus: Corpus, tmp_path: Path
) -> None:
    shutil.copytree(corpus.folder, tmp_path / "elsewhere" / "saved")
    assert run(tmp_path / "another home", tmp_path / "elsewhere" / "saved").published
    first, second = (snapshots.required(Home(folder)).manifest for folder in (home, tmp_path / "another home"))
    assert first["content_digest"] == second["content_digest"]
    # A Parquet file of equal rows has equal bytes; these tables alone say when something was seen.
    seen = ("parquet/source_files/", "parquet/drift/", "parquet/sources/", "parquet/snapshot/", "parquet/movements/")
    for name, stated in first["files"].items():
        if name.startswith("parquet/") and not name.startswith(seen):
            assert second["files"][name] == stated


def test_one_changed_file_makes_only_its_parts_anew(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    parts = home / "tables" / "gpumode-kernelbot" / "files"
    before = {path.name for path in parts.iterdir()}
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    assert run(home, saved).published
    after = {path.name for path in parts.iterdir()}
    assert len(after - before) == 1


def test_a_withdrawn_score_leaves_no_run_of_yesterday_beside_it(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    table = pq.read_table(path)
    eligible = rows(
        home, "select run_id, item, submission_key from runs where locator = 'trimul_submissions.parquet' and eligible"
    )
    run_id, item, submission_key = eligible[0]
    row = int(item)
    for name in ("score", "passed", "mode", "runner"):
        column = table[name].to_pylist()
        column[row] = None
        position = table.schema.get_field_index(name)
        table = table.set_column(position, table.schema.field(name), pa.array(column, table.schema.field(name).type))
    pq.write_table(table, path)
    assert run(home, saved).published
    assert rows(home, f"select run_id from runs where run_id = '{run_id}'") == []
    withdrawn = rows(
        home, f"select run_id, eligible, ineligible_reasons from runs where submission_key = '{submission_key}'"
    )
    without_runner = f"{run_id.rpartition('/')[0]}"
    assert (without_runner, False, ["NOT_PASSED", "MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT"]) in withdrawn
    assert rows(home, f"select kind from movements where run_id = '{run_id}'") == [("withdrawn",)]


def test_a_row_that_vanished_upstream_leaves_the_tables_and_movements_say_so(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    text = "select run_id, item from runs where locator = 'trimul_submissions.parquet' and eligible"
    run_id, item = rows(home, text)[-1]
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table.slice(0, int(item)), table.slice(int(item) + 1)]), path)
    assert run(home, saved).published
    assert rows(home, f"select count(*) from runs where run_id = '{run_id}'") == [(0,)]
    assert rows(home, f"select kind from movements where run_id = '{run_id}'") == [("left",)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "kernelbot/trimul_submissions.parquet",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        ),
        ("kernelbot/leaderboards.parquet", b"PAR1 and then nothing"),
        ("sol_execbench/kernels.json", b"<!doctype html><html><body>502</body></html>"),
        ("sol_execbench/kernels/9001.json", b""),
        ("sol_execbench/submissions/9001.json", b'{"data": {"submissions": [{"id": 1'),
    ],
)
def test_a_file_that_cannot_be_read_gives_way_to_its_last_good_content(
    copies: tuple[Path, Path], name: str, content: bytes
) -> None:
    home, saved = copies
    before = rows(home, "select count(*) from runs")
    (saved / name).write_bytes(content)
    outcome = run(home, saved)
    (line,) = outcome.stale
    assert line.startswith(name.partition("/")[2])
    assert "\n" not in line
    assert rows(home, "select count(*) from runs") == before
    stale = {"gpumode-kernelbot": name.startswith("kernelbot"), "sol-execbench": name.startswith("sol")}
    assert dict(rows(home, "select source, stale from sources")) == stale


def test_the_command_line_ends_with_3_for_a_stale_source_and_with_0_once_it_is_well_again(
    copies: tuple[Path, Path],
) -> None:
    home, saved = copies
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    content = path.read_bytes()
    path.write_bytes(b"<html>")
    first = command(home, "ingest", "--from", str(saved))
    assert first.returncode == 3
    (line,) = [line for line in first.stderr.splitlines() if " step " not in line]
    assert line.startswith("stale: trimul_submissions.parquet: an HTML page stands in place of the file")
    assert first.stdout.startswith("published: snapshot ")
    again = command(home, "ingest", "--from", str(saved))
    assert (again.returncode, again.stdout.split()[0]) == (3, "unchanged:")
    path.write_bytes(content)
    well = command(home, "ingest", "--from", str(saved))
    assert well.returncode == 0
    assert all(" step " in line for line in well.stderr.splitlines())
    assert dict(rows(home, "select source, stale from sources"))["gpumode-kernelbot"] is False


def test_a_first_ingest_of_a_file_that_cannot_be_read_fails_and_publishes_nothing(
    corpus: Corpus, tmp_path: Path
) -> None:
    shutil.copytree(corpus.folder, tmp_path / "saved")
    (tmp_path / "saved" / "kernelbot" / "trimul_submissions.parquet").write_bytes(b"version https://git-lfs")
    failed = command(tmp_path / "home", "ingest", "--from", str(tmp_path / "saved"))
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == (
        "Error: trimul_submissions.parquet: a Git LFS pointer stands in place of the file; fetch the file itself"
    )
    assert snapshots.latest(Home(tmp_path / "home")) is None


def test_a_source_without_a_folder_is_not_asked_for_and_keeps_its_last_good_rows(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = rows(home, "select source, count(*) from runs group by all order by all")
    shutil.rmtree(saved / "sol_execbench")
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    done = command(home, "ingest", "--from", str(saved), "--accept-loss")
    assert (done.returncode, done.stdout.split()[0]) == (0, "published:")
    after = rows(home, "select source, count(*) from runs group by all order by all")
    assert after == [(before[0][0], before[0][1] - 1), before[1]]
    assert dict(rows(home, "select source, stale from sources")) == {"gpumode-kernelbot": False, "sol-execbench": False}


def test_a_folder_without_any_source_is_refused(tmp_path: Path) -> None:
    failed = command(tmp_path / "home", "ingest", "--from", str(tmp_path))
    assert failed.returncode == 1
    assert "no source is there" in failed.stderr
    with pytest.raises(KernelmartError, match="no source has any run"):
        run(tmp_path / "home", tmp_path)


def test_one_source_alone_can_be_asked_for(corpus: Corpus, tmp_path: Path) -> None:
    assert run(tmp_path, corpus.folder, "sol-execbench").published
    assert rows(tmp_path, "select distinct source from runs") == [("sol-execbench",)]
    assert run(tmp_path, corpus.folder, "gpumode-kernelbot").published
    assert len(rows(tmp_path, "select distinct source from runs")) == 2


def test_every_code_in_the_tables_is_explained(home: Path) -> None:
    found = {
        "runs.status": "select distinct status from runs",
        "runs.ineligible_reasons": "select distinct regexp_replace(reason, '^MODE_.*', 'MODE_') from ineligible",
        "runs.flags": "select distinct split_part(unnest(flags), ':', 1) from runs",
        "rejects.reason": "select distinct reason from rejects",
        "drift.kind": "select distinct kind from drift",
    }
    for column, text in found.items():
        known = {code.partition(":")[0].partition("<")[0] for code in CODES[column]}
        assert {code for (code,) in rows(home, text)} <= known, column


def test_hostile_text_comes_through_unharmed(home: Path) -> None:
    names = {name for (name,) in rows(home, "select author_name from authors where source = 'gpumode-kernelbot'")}
    users = {name for (name,) in rows(home, "select author_id from authors where source = 'sol-execbench'")}
    files = {name for (name,) in rows(home, "select file_name from submissions")}
    assert set(hostile_text) <= names & users & files


def test_the_exports_can_be_read_by_polars_with_the_same_rows(home: Path) -> None:
    snapshot = snapshots.required(Home(home))
    for name, table in TABLES.items():
        frame = polars.read_parquet(snapshot.parquet(name))
        assert (name, frame.height) == (name, snapshot.manifest["tables"][name]["rows"])
        assert frame.columns == list(table.names)
    frame = polars.read_parquet(snapshot.parquet("runs"))
    eligible = rows(home, "select count(*) from runs where eligible")
    assert frame.filter("eligible").height == eligible[0][0]


def test_a_part_that_nothing_uses_any_more_is_removed(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    about = sorted((home / "tables").rglob("part.json"))
    (old,) = [path for path in about if path.parent.parent.name == "ranks"]
    unused = old.parent.with_name("0" * 32)
    shutil.copytree(old.parent, unused)
    for path in (old, unused / "part.json"):
        os.utime(path, (0, 0))
    assert not run(home, saved).published
    assert old.exists()
    assert not unused.exists()


def test_published_files_cannot_be_written_to(home: Path) -> None:
    folder = snapshots.required(Home(home)).folder
    modes = {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o444}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o555}
    assert not list(folder.glob("*.wal"))


def test_the_pointer_names_the_manifest_by_its_digest(home: Path) -> None:
    pointer = json.loads((home / "snapshots" / "latest.json").read_text())
    snapshot = snapshots.required(Home(home))
    assert pointer["snapshot_id"] == snapshot.snapshot_id == (home / "snapshots" / "latest").readlink().name
    assert list(snapshot.damage()) == []


def test_a_latest_snapshot_whose_bytes_have_changed_is_made_anew(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    damaged = snapshots.required(Home(home))
    (path,) = damaged.parquet("ranks")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    assert [line.partition(": ")[0] for line in damaged.damage()] == [str(path)]
    outcome = run(home, saved)
    assert outcome.published
    repaired = snapshots.required(Home(home))
    assert list(repaired.damage()) == []
    assert repaired.manifest["content_digest"] == damaged.manifest["content_digest"]


def test_a_file_that_is_gone_is_told(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    (saved / "kernelbot" / "trimul_submissions.parquet").unlink()
    done = command(home, "ingest", "--from", str(saved), "--accept-loss")
    assert done.returncode == 0
    assert "gone: gpumode-kernelbot no longer has trimul_submissions.parquet; its rows have left" in done.stderr
    assert rows(home, "select count(*) from runs where locator = 'trimul_submissions.parquet'") == [(0,)]


def test_a_home_that_cannot_be_made_is_one_line(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for where in (tmp_path / "file" / "below", Path("/proc/nowhere")):
        failed = command(where, "ingest", "--from", str(corpus.folder))
        assert failed.returncode == 1
        assert "Traceback" not in failed.stderr
        assert failed.stderr.splitlines()[-1].startswith("Error: ")


def test_a_damaged_original_is_replaced_by_the_next_ingest_of_it(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = snapshots.required(Home(home)).manifest["content_digest"]
    page = saved / "sol_execbench" / "submissions" / "9001.json"
    kept = RawStore(home / "raw").path("sha256:" + hashlib.sha256(page.read_bytes()).hexdigest())
    kept.write_bytes(kept.read_bytes().replace(b"0", b"1"))
    for folder in ("tables", "snapshots"):
        files.remove_tree(home / folder)
    assert run(home, saved).published
    assert snapshots.required(Home(home)).manifest["content_digest"] == before
    assert list(RawStore(home / "raw").damaged()) == []


def test_damaged_parts_are_made_anew(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = snapshots.required(Home(home)).manifest["content_digest"]
    for path in (home / "tables").rglob("runs*.parquet"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    files.remove_tree(home / "snapshots")
    assert run(home, saved).published
    assert snapshots.required(Home(home)).manifest["content_digest"] == before


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling link"])
def test_a_name_without_a_regular_file_is_a_file_that_cannot_be_read(copies: tuple[Path, Path], kind: str) -> None:
    home, saved = copies
    before = rows(home, "select count(*) from runs")
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    (line,) = run(home, saved).stale
    assert line.startswith("trimul_submissions.parquet: it is no regular file")
    assert rows(home, "select count(*) from runs") == before


def test_an_ingest_that_dies_before_the_pointer_moves_never_brings_older_files_back(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, saved = copies
    path = saved / "kernelbot" / "trimul_submissions.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)

    def die(*_: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "publish", die)
        with pytest.raises(KernelmartError, match="killed"):
            run(home, saved)
    before = rows(home, "select count(*) from runs")[0][0]
    shutil.rmtree(saved / "kernelbot")
    assert run(home, saved).published
    assert rows(home, "select count(*) from runs") == [(before - 1,)]


def test_a_home_may_be_called_anything(corpus: Corpus, tmp_path: Path) -> None:
    home = tmp_path / "problem=evil" / "name=it's [a] \u202e"
    assert run(home, corpus.folder, "sol-execbench").published
    assert {problem for (problem,) in rows(home, "select problem from runs")} != {"evil"}


def test_a_damaged_pointer_is_one_line_and_the_next_ingest_puts_it_right(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = snapshots.required(Home(home)).snapshot_id
    pointer = home / "snapshots" / "latest.json"
    pointer.write_bytes(pointer.read_bytes()[:10])
    failed = command(home, "path")
    assert failed.returncode == 1
    assert "latest.json: the pointer to the latest snapshot cannot be read" in failed.stderr.splitlines()[-1]
    assert not run(home, saved).published
    assert snapshots.required(Home(home)).snapshot_id == before


def test_a_second_ingest_of_one_home_gives_way_and_names_the_first(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    with Home(home).locked():
        second = command(home, "ingest", "--from", str(saved))
    assert second.returncode == 1
    assert f"another ingest holds this home (process {os.getpid()} on " in second.stderr.splitlines()[-1]


def test_tables_have_the_same_rows_in_duckdb_and_in_parquet(home: Path) -> None:
    snapshot = snapshots.required(Home(home))
    with duckdb.connect(str(snapshot.database), read_only=True) as connection:
        for name in TABLES:
            paths = [str(path) for path in snapshot.parquet(name)]
            text = f'select count(*) from (from "{name}" except all from read_parquet($paths))'
            assert connection.execute(text, {"paths": paths}).fetchall() == [(0,)]
            parquet = connection.execute("describe from read_parquet($paths)", {"paths": paths}).fetchall()
            described = connection.execute(f'describe "{name}"').fetchall()
            assert [row[:2] for row in parquet] == [row[:2] for row in described]
