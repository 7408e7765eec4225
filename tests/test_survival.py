"""Ingests that are killed, run out of room, may not write or find damage: the latest snapshot stays, and the next
ingest does it all."""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.filling import STEPS, full_from, small_disk, without_privileges
from tests.killing import Disturbed, Ended, Ingest, content, leftovers, require_settled, runs
from tests.torture import torture
from warehouse import files, snapshots
from warehouse.home import Home


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
    """Whether a command failed, and the last line says why; Dagster tells of an event that it could not store."""
    errors = [line for line in ended.errors.splitlines() if line.startswith("Error: ")]
    return ended.code == 1 and errors == [ended.last_line] and "Traceback" not in ended.errors


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
        # Parts of both folders are there.
        files.remove_tree(home.tables)
        for step in STEPS:
            (home.dagster / "dagster.yaml").unlink(missing_ok=True)
            before = content(home)
            other = disturbed.saved[1 - disturbed.contents.index(before)]
            ended = Ingest(home.root, other, full_from, step, home.root, ballast).ended()
            assert ballast.exists(), f"no room was taken at {step}"
            assert is_one_line(ended), f"{step}: {ended.errors}"
            assert "room" in ended.last_line or "space" in ended.last_line, f"{step}: {ended.last_line}"
            latest = snapshots.required(home)
            assert list(snapshots.damage_of(home, latest)) == [], step
            if step not in ("history", "status"):
                assert content(home) == before, step
            ballast.unlink()
        require_settled(home, disturbed.saved[0], disturbed.contents[0])


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
def test_flipped_bits_are_made_good_by_the_next_ingest(disturbed: Disturbed, home: Path, which: int, kind: str) -> None:
    there = Home(home)
    latest = snapshots.required(there).folder
    places = {
        "published": latest.rglob("*"),
        "beside the snapshots": (there.snapshots / "latest.json", there.snapshots / "history.json", there.status),
        "raw and parts": (path for below in (there.raw, there.tables) for path in below.rglob("*")),
    }[kind]
    flipped = [flip(path) for path in sorted(places) if path.is_file()]
    assert len(flipped) >= 3
    require_settled(there, disturbed.saved[which], disturbed.contents[which])
