"""Whole ingests of generated corpora: what comes out, what a bad source does, and what stays the same."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
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
from tests import commands
from tests.oracle import read as oracle_read
from warehouse import files, snapshots
from warehouse.codes import CODES
from warehouse.contracts import TABLES
from warehouse.errors import KernelmartError
from warehouse.home import Home
from warehouse.raw import RawStore

CHANGED = "trimul_submissions.parquet"


def run(home: Path, folder: Path, *sources: str) -> Outcome:
    # What shrinks is looked at in tests of its own.
    return ingest(Home(home), Request(folder=str(folder), sources=list(sources), accept_loss=True))


def rows(home: Path, text: str) -> list[Any]:
    with snapshots.required(Home(home)).open() as connection:
        return connection.execute(text).fetchall()


@pytest.fixture(scope="session")
def corpus(small_corpus: Corpus) -> Corpus:
    return small_corpus


@pytest.fixture(scope="session")
def home(small_home_folder: Path) -> Path:
    """A home with the corpus in it; tests that change it take a copy."""
    return small_home_folder


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


def test_a_changed_file_makes_its_parts_anew_and_movements_say_which_runs_were_withdrawn_and_which_left(
    copies: tuple[Path, Path],
) -> None:
    home, saved = copies
    parts = home / "tables" / "gpumode-kernelbot" / "files"
    before = {path.name for path in parts.iterdir()}
    path = saved / "kernelbot" / CHANGED
    table = pq.read_table(path)
    eligible = rows(
        home, f"select run_id, item::int, submission_key from runs where locator = '{CHANGED}' and eligible order by 2"
    )
    (withdrawn, first, submission_key), (gone, last, _) = eligible[0], eligible[-1]
    for name in ("score", "passed", "mode", "runner"):
        column = table[name].to_pylist()
        column[first] = None
        position = table.schema.get_field_index(name)
        table = table.set_column(position, table.schema.field(name), pa.array(column, table.schema.field(name).type))
    pq.write_table(pa.concat_tables([table.slice(0, last), table.slice(last + 1)]), path)
    assert run(home, saved).published
    assert len({path.name for path in parts.iterdir()} - before) == 1
    # No run of yesterday stays beside the one that has no score any more.
    assert rows(home, f"select run_id from runs where run_id in ('{withdrawn}', '{gone}')") == []
    left = rows(
        home, f"select run_id, eligible, ineligible_reasons from runs where submission_key = '{submission_key}'"
    )
    without_runner = f"{withdrawn.rpartition('/')[0]}"
    assert (without_runner, False, ["NOT_PASSED", "MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT"]) in left
    moved = f"select run_id, kind from movements where run_id in ('{withdrawn}', '{gone}')"
    assert dict(rows(home, moved)) == {withdrawn: "withdrawn", gone: "left"}


def test_files_that_cannot_be_read_give_way_to_their_last_good_content(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = rows(home, "select count(*) from runs")
    damaged = {
        "kernels.json": b"<!doctype html><html><body>502</body></html>",
        "kernels/9001.json": b"",
        "submissions/9001.json": b'{"data": {"submissions": [{"id": 1',
    }
    for name, content in damaged.items():
        (saved / "sol_execbench" / name).write_bytes(content)
    outcome = run(home, saved)
    assert sorted(line.partition(": ")[0] for line in outcome.stale) == sorted(damaged)
    assert not any("\n" in line for line in outcome.stale)
    assert rows(home, "select count(*) from runs") == before
    assert dict(rows(home, "select source, stale from sources")) == {"gpumode-kernelbot": False, "sol-execbench": True}


def test_the_command_ends_with_3_and_a_line_for_each_file_that_cannot_be_read_and_with_0_once_all_is_well(
    copies: tuple[Path, Path],
) -> None:
    home, saved = copies
    before = rows(home, "select count(*) from runs")
    folder = saved / "kernelbot"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    wrong: dict[str, tuple[Callable[[Path], object], str]] = {
        CHANGED: (lambda path: path.write_bytes(pointer), "a Git LFS pointer stands in place of the file"),
        "leaderboards.parquet": (lambda path: path.write_bytes(b"PAR1 and then nothing"), ""),
        "submissions.parquet": (lambda path: path.write_bytes(b"<html>"), "an HTML page stands in place of the file"),
        "amd_1_1m_competition_submissions.parquet": (os.mkfifo, "it is no regular file"),
        "nvidia_nvfp4_submissions.parquet": (Path.mkdir, "it is no regular file"),
        "pmpp_v2_submissions.parquet": (lambda path: path.symlink_to("nowhere"), "it is no regular file"),
    }
    for name, (spoil, _) in wrong.items():
        (folder / name).rename(saved / name)
        spoil(folder / name)
    words = (sys.executable, "-m", "pipelines.cli", "ingest", "--from", str(saved), "--home", str(home))
    first = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert (first.returncode, first.stdout[:20]) == (3, "published: snapshot ")
    lines = [line for line in first.stderr.splitlines() if " step " not in line]
    for name, (_, why) in wrong.items():
        assert [line.startswith(f"stale: {name}: {why}") for line in lines].count(True) == 1, name
    assert len(lines) == len(wrong)
    assert rows(home, "select count(*) from runs") == before
    assert dict(rows(home, "select source, stale from sources")) == {"gpumode-kernelbot": True, "sol-execbench": False}
    again = commands.run(home, "ingest", "--from", str(saved))
    assert (again.exit_code, again.stdout.split()[0]) == (3, "unchanged:")
    for name in wrong:
        path = folder / name
        path.rmdir() if path.is_dir() else path.unlink()
        (saved / name).rename(path)
    well = commands.run(home, "ingest", "--from", str(saved))
    assert (well.exit_code, well.stderr) == (0, "")
    assert dict(rows(home, "select source, stale from sources"))["gpumode-kernelbot"] is False


def test_a_first_ingest_of_a_file_that_cannot_be_read_fails_and_publishes_nothing(
    corpus: Corpus, tmp_path: Path
) -> None:
    shutil.copytree(corpus.folder, tmp_path / "saved")
    (tmp_path / "saved" / "kernelbot" / CHANGED).write_bytes(b"version https://git-lfs")
    assert commands.refused(tmp_path / "home", "ingest", "--from", str(tmp_path / "saved")) == (
        f"{CHANGED}: a Git LFS pointer stands in place of the file; fetch the file itself"
    )
    assert snapshots.latest(Home(tmp_path / "home")) is None


def test_a_source_without_a_folder_keeps_its_last_good_rows_and_a_file_that_is_gone_is_told(
    copies: tuple[Path, Path],
) -> None:
    home, saved = copies
    text = f"select source, count(*), count(*) filter (locator = '{CHANGED}') from runs group by all order by all"
    (kernelbot, count, of_file), sol = rows(home, text)
    shutil.rmtree(saved / "sol_execbench")
    (saved / "kernelbot" / CHANGED).unlink()
    done = commands.run(home, "ingest", "--from", str(saved), "--accept-loss")
    assert (done.exit_code, done.stdout.split()[0]) == (0, "published:")
    assert f"gone: gpumode-kernelbot no longer has {CHANGED}; its rows have left" in done.stderr
    assert of_file > 0
    assert rows(home, text) == [(kernelbot, count - of_file, 0), sol]
    assert dict(rows(home, "select source, stale from sources")) == {"gpumode-kernelbot": False, "sol-execbench": False}


def test_a_folder_without_any_source_is_refused(tmp_path: Path) -> None:
    assert "no source is there" in commands.refused(tmp_path / "home", "ingest", "--from", str(tmp_path))
    with pytest.raises(KernelmartError, match="no source has any run"):
        run(tmp_path / "home", tmp_path)


def test_one_source_alone_can_be_asked_for_in_a_home_of_any_name(corpus: Corpus, tmp_path: Path) -> None:
    home = tmp_path / "problem=evil" / "name=it's [a] \u202e"
    assert run(home, corpus.folder, "sol-execbench").published
    assert rows(home, "select distinct source from runs") == [("sol-execbench",)]
    assert {problem for (problem,) in rows(home, "select problem from runs")} != {"evil"}
    assert run(home, corpus.folder, "gpumode-kernelbot").published
    assert len(rows(home, "select distinct source from runs")) == 2


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


def test_a_home_that_cannot_be_made_is_one_line(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for where in (tmp_path / "file" / "below", Path("/proc/nowhere")):
        commands.refused(where, "ingest", "--from", str(corpus.folder))


def test_damaged_originals_and_parts_are_made_anew_by_the_next_ingest_of_them(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = snapshots.required(Home(home)).manifest["content_digest"]
    page = saved / "sol_execbench" / "submissions" / "9001.json"
    kept = RawStore(home / "raw").path("sha256:" + hashlib.sha256(page.read_bytes()).hexdigest())
    kept.write_bytes(kept.read_bytes().replace(b"0", b"1"))
    damaged = list((home / "tables" / "gpumode-kernelbot").rglob("runs*.parquet"))
    assert damaged
    for path in damaged:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    files.remove_tree(home / "tables" / "sol-execbench")
    files.remove_tree(home / "snapshots")
    assert run(home, saved).published
    assert snapshots.required(Home(home)).manifest["content_digest"] == before
    assert list(RawStore(home / "raw").damaged()) == []


def test_an_ingest_that_dies_before_the_pointer_moves_never_brings_older_files_back(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, saved = copies
    path = saved / "kernelbot" / CHANGED
    pq.write_table(pq.read_table(path).slice(1), path)

    def die(*_: object, **__: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "publish", die)
        with pytest.raises(KernelmartError, match="killed"):
            run(home, saved)
    before = rows(home, "select count(*) from runs")[0][0]
    shutil.rmtree(saved / "kernelbot")
    assert run(home, saved).published
    assert rows(home, "select count(*) from runs") == [(before - 1,)]


def test_a_damaged_pointer_is_one_line_and_the_next_ingest_puts_it_right(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    before = snapshots.required(Home(home)).snapshot_id
    pointer = home / "snapshots" / "latest.json"
    pointer.write_bytes(pointer.read_bytes()[:10])
    assert "latest.json: the pointer to the latest snapshot cannot be read" in commands.refused(home, "path")
    assert not run(home, saved).published
    assert snapshots.required(Home(home)).snapshot_id == before


def test_a_second_ingest_of_one_home_gives_way_and_names_the_first(copies: tuple[Path, Path]) -> None:
    home, saved = copies
    with Home(home).locked():
        reason = commands.refused(home, "ingest", "--from", str(saved))
    assert f"another ingest holds this home (process {os.getpid()} on " in reason


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
