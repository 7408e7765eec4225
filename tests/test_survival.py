"""Ingests that are killed, run out of room, may not write or find damage: the latest snapshot stays, and the next
ingest does it all."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import definitions
from pipelines.instance import instance_of
from tests.commands import refused, run
from tests.filling import STEPS, fill, full_from, small_disk, without_privileges
from tests.killing import Disturbed, Ended, Ingest, content, die_at, leftovers, require_settled, runs
from tests.torture import torture
from warehouse import files, snapshots
from warehouse.home import Home

NO_ROOM = "No space left on device; make room there"


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Disturbed:
    return Disturbed.made(tmp_path_factory.mktemp("disturbed"))


@pytest.fixture
def home(disturbed: Disturbed, tmp_path: Path) -> Path:
    """A home with the content of the first folder."""
    return copied(disturbed, tmp_path / "home")


def copied(disturbed: Disturbed, place: Path) -> Path:
    shutil.copytree(disturbed.first, place, symlinks=True)
    return place


def is_one_line(ended: Ended) -> bool:
    """Whether a command failed, and says why in one line; the log has steps before it, and what was removed."""
    logged = re.compile(r"[-\d]+ [:,\d]+ (step \S+ .*|.*it was never the latest snapshot, and is removed)")
    said = [line for line in ended.errors.splitlines() if not logged.fullmatch(line)]
    return ended.code == 1 and said == [ended.last_line] and ended.last_line.startswith("Error: ")


def test_an_ingest_killed_at_any_step_of_publishing_is_made_good_by_the_next(disturbed: Disturbed) -> None:
    step = 0
    while disturbed.killed_at(step % 2, step):
        step += 1
        assert step < 40
    # The folder, the pointer, the link twice, the history, what the stage tells, and the status.
    assert step >= 7
    assert content(disturbed.home) == disturbed.contents[step % 2]
    assert leftovers(disturbed.home) == []
    # The last steps come after the run itself.
    assert 7 <= [status for _, status in runs(disturbed.home)].count("FAILURE") <= step


@pytest.mark.parametrize("newer", [True, False])
def test_the_draft_of_a_dead_ingest_is_published_alone_only_while_nothing_newer_is_in(
    disturbed: Disturbed, home: Path, newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_HOME", str(home))
    assert Ingest(home, disturbed.saved[1], die_at, 0).ended().code == -signal.SIGKILL
    assert snapshots.draft_of(Home(home))
    if newer:
        assert chosen(home, disturbed.saved[0], "kernelbot/raw_files", "kernelbot/rows").success
    alone = chosen(home, disturbed.saved[0], "warehouse/snapshot")
    assert alone.success == (not newer)
    assert content(Home(home)) == disturbed.contents[0 if newer else 1]
    if newer:
        [failure] = [event for event in alone.all_events if event.is_step_failure]
        assert "this draft is not of what the warehouse has now" in str(failure.event_specific_data)


def chosen(home: Path, saved: Path, *assets: str) -> dg.ExecuteInProcessResult:
    """Make some assets alone, as from Dagster's pages."""
    with instance_of(Home(home)) as instance:
        return definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            run_config={"resources": {"request": {"config": {"folder": str(saved)}}}},
            instance=instance,
            raise_on_error=False,
            asset_selection=[dg.AssetKey(asset.split("/")) for asset in assets],
        )


def test_ingests_killed_at_random_moments_are_made_good_by_the_next(disturbed: Disturbed) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201
    torture(disturbed, seed, 8, settle_every=4)


def test_an_ingest_without_room_says_so_and_the_next_with_room_does_it_all(
    disturbed: Disturbed, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("this user may not mount a small file system")
        home, ballast = Home(copied(disturbed, disk / "home")), disk / "ballast"
        # Originals and parts of both folders are there.
        files.remove_tree(home.raw / "objects")
        files.remove_tree(home.tables)
        for step in STEPS:
            (home.dagster / "dagster.yaml").unlink(missing_ok=True)
            before = content(home)
            other = disturbed.saved[1 - disturbed.contents.index(before)]
            ended = Ingest(home.root, other, full_from, step, home.root, ballast).ended()
            assert ballast.exists(), f"no room was taken at {step}"
            assert is_one_line(ended), f"{step}: {ended.errors}"
            assert NO_ROOM in ended.last_line, f"{step}: {ended.last_line}"
            latest = snapshots.required(home)
            assert list(snapshots.damage_of(home, latest)) == [], step
            if step not in ("history", "status"):
                assert content(home) == before, step
            ballast.unlink()
        require_settled(home, disturbed.saved[0], disturbed.contents[0])


@pytest.mark.parametrize("folder", ["raw", "tables", "snapshots"])
def test_the_line_about_a_full_disk_names_the_place(disturbed: Disturbed, home: Path, folder: str) -> None:
    files.remove_tree(home / "tables")
    shutil.move(home / folder, home / "kept") if (home / folder).exists() else (home / "kept").mkdir()
    with small_disk(home / folder) as disk:
        if disk is None:
            pytest.skip("this user may not mount a small file system")
        shutil.copytree(home / "kept", disk, symlinks=True, dirs_exist_ok=True)
        (disk / ("state" if folder == "tables" else ".draft")).mkdir()
        ended = Ingest(home, disturbed.saved[1], fill, disk / "ballast").ended()
        assert is_one_line(ended), ended.errors
        assert re.search(f"{home / folder}[^ ]*: {NO_ROOM}", ended.last_line), ended.last_line
        assert content(Home(home)) == disturbed.contents[0]


def test_what_is_written_elsewhere_says_where_there_is_no_room_and_what_makes_room_needs_none(
    known_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"file://{tmp_path / 'store'}"
    assert run(known_home, "publish", "--to", store).exit_code == 0
    with small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("this user may not mount a small file system")
        shutil.copytree(known_home, disk / "home", symlinks=True)
        fill(disk / "ballast")
        for form in ("jsonl", "csv", "arrow", "kernelindex"):
            line = refused(known_home, "export", "--format", form, "--to", str(disk / "export"))
            assert line.startswith(f"{disk / 'export'}: "), line
            assert "No space left on device; nothing was exported; make room there" in line
        line = refused(known_home, "publish", "--to", f"file://{disk / 'store'}")
        assert re.fullmatch(f"file://{disk / 'store'}/snapshots/[^ ]*: No space left on device; make room there", line)
        monkeypatch.setenv("KERNELMART_CACHE", str(disk / "cache"))
        line = refused(store, "sql", "select 1")
        assert re.match(f"{disk / 'cache'}/[^ ]*: {NO_ROOM}", line), line
        assert not [path for path in disk.rglob("*") if path.is_file() and path.parts[-2] in ("export", "cache")]
        assert refused(disk / "home", "snapshots", "rollback", "--reason", "x")
        assert run(disk / "home", "snapshots", "prune").exit_code == 0


@pytest.mark.parametrize("below", ["", "raw", "tables", "snapshots", "dagster"])
def test_a_folder_that_may_not_be_written_to_is_one_line(disturbed: Disturbed, home: Path, below: str) -> None:
    closed = home / below
    for path in (closed, *closed.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    ended = Ingest(home, disturbed.saved[1], without_privileges).ended()
    assert is_one_line(ended), ended.errors
    assert str(home) in ended.last_line
    assert content(Home(home)) == disturbed.contents[0]


def test_of_two_ingests_at_once_one_does_it_and_a_dead_holder_of_the_lock_is_in_nobodys_way(
    disturbed: Disturbed, home: Path
) -> None:
    assert Ingest(home, disturbed.saved[1], die_in_the_lock).ended().code == -signal.SIGKILL
    assert (home / "lock.json").exists()
    both = [Ingest(home, disturbed.saved[1]) for _ in range(2)]
    ended = [one.ended() for one in both]
    assert [one.code for one in ended if "published" in one.output] == [0]
    for one in ended:
        assert one.code == 0 or "another ingest holds this home (process " in one.last_line
    assert content(Home(home)) == disturbed.contents[1]
    assert leftovers(Home(home)) == []


def die_in_the_lock() -> None:
    """Have this process killed as soon as it holds the home."""
    setattr(files, "remove_leftovers", lambda _: os.kill(os.getpid(), signal.SIGKILL))  # noqa: B010


def flip(path: Path) -> Path:
    """Change one bit in the middle of a file; its path."""
    for one in (path.parent, path):
        one.chmod(one.stat().st_mode | 0o200)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("which", "kind"), [(0, "published"), (0, "beside the snapshots"), (1, "raw and parts")])
def test_flipped_bits_are_named_and_made_good_by_the_next_ingest(
    disturbed: Disturbed, home: Path, which: int, kind: str
) -> None:
    there = Home(home)
    latest = snapshots.required(there).folder
    places = {
        "published": latest.rglob("*"),
        "beside the snapshots": (there.snapshots / "latest.json", there.snapshots / "history.json", there.status),
        "raw and parts": (path for below in (there.raw, there.tables) for path in below.rglob("*")),
    }[kind]
    flipped = [flip(path) for path in sorted(places) if path.is_file()]
    assert len(flipped) >= 3
    said = run(home, "snapshots", "verify", "--all").output + run(home, "raw", "verify").output
    # Parts are made anew, and neither published nor kept.
    assert [path for path in flipped if str(path) not in said and not path.is_relative_to(there.tables)] == []
    require_settled(there, disturbed.saved[which], disturbed.contents[which])
