"""Real ingests in processes of their own, killed at a moment or at a step, and what must be true of a home after it."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import dagster as dg

from tests.kernelbot_folder import score_row, write
from warehouse import files, history, life, snapshots
from warehouse.home import Home
from warehouse.raw import RawStore

# Each process begins with all that an ingest imports.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pipelines.ingest", "pipelines.cli", "tests.killing"])
# An ingest of a few rows that takes longer hangs.
LONGEST_SECONDS = 900
STEPS = ("rename", "replace", "symlink")
_ENDED = ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, below 0 where a signal ended it, and what it said."""

    code: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last line on standard error."""
        return self.errors.splitlines()[-1] if self.errors else ""


class Ingest:
    """`kernelmart ingest --from` of a folder in a process of its own.

    Args:
        home: the warehouse's folder.
        saved: the folder of saved files.
        prepare: called in the process before the command is; a function of a module.
        arguments: what it is called with.
    """

    def __init__(self, home: Path, saved: Path, prepare: Callable[..., None] | None = None, *arguments: object) -> None:
        self._says = saved.with_name(f"said-{os.getpid()}-{time.monotonic_ns()}.txt")
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(home, saved, self._says, prepare, arguments)
        )
        self._process.start()

    def killed(self, after: float) -> Ended:
        """Kill it after so many seconds, unless it has ended."""
        self._process.join(after)
        if self._process.is_alive():
            self._process.kill()
        return self.ended()

    def ended(self) -> Ended:
        """Wait for its end."""
        self._process.join(LONGEST_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise AssertionError("an ingest hangs")
        code = self._process.exitcode
        texts = []
        for place in (self._says, self._says.with_suffix(".errors")):
            texts.append(place.read_text() if place.exists() else "")
            place.unlink(missing_ok=True)
        return Ended(code if code is not None else 1, *texts)


def ingested(home: Path, saved: Path) -> Ended:
    """An ingest that nothing disturbs."""
    return Ingest(home, saved).ended()


def _run(
    home: Path, saved: Path, says: Path, prepare: Callable[..., None] | None, arguments: tuple[object, ...]
) -> None:
    for descriptor, place in ((1, says), (2, says.with_suffix(".errors"))):
        os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), descriptor)
    if prepare is not None:
        prepare(*arguments)
    from pipelines.cli import main

    main(["ingest", "--from", str(saved), "--home", str(home)])


def die_at(step: int) -> None:
    """Have this process killed just before a step of publishing: a rename, replacement or link; the first is 0."""
    publish, numbers = snapshots.publish, itertools.count()

    def counted(call: Callable[..., None]) -> Callable[..., None]:
        def or_die(*arguments: object, **options: object) -> None:
            if next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            call(*arguments, **options)

        return or_die

    def publish_or_die(home: Home, draft: snapshots.Snapshot, *, forced: bool = False) -> snapshots.Snapshot:
        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        return publish(home, draft, forced=forced)

    snapshots.publish = publish_or_die


@dataclass(frozen=True)
class Disturbed:
    """A home whose ingests are disturbed, two folders of saved files, and the content that each gives undisturbed."""

    home: Home
    saved: tuple[Path, Path]
    contents: tuple[str, str]
    seconds: float

    @property
    def first(self) -> Path:
        """A home in which nothing was disturbed, with the content of the first folder; to be copied."""
        return self.home.root.with_name("first")

    @classmethod
    def made(cls, folder: Path) -> Disturbed:
        """Write the folders, and ingest both undisturbed, in another home."""
        saved = (folder / "a", folder / "b")
        rows = [score_row(number, 0.5 + number) for number in range(1, 20)]
        contents, seconds = ["", ""], 0.0
        for which in (1, 0):
            write(saved[which] / "kernelbot", "trimul_submissions", rows[which:])
            start = time.monotonic()
            ended = ingested(folder / "first", saved[which])
            seconds = time.monotonic() - start
            assert ended.code == 0, ended.errors
            contents[which] = content(Home(folder / "first"))
        assert contents[0] != contents[1]
        return cls(Home(folder / "home"), saved, (contents[0], contents[1]), seconds)

    def killed(self, which: int, after: float) -> bool:
        """Kill an ingest of one of the folders after so many seconds; whether it was still running."""
        ended = Ingest(self.home.root, self.saved[which]).killed(after)
        self.require_sound()
        assert ended.code in (0, -signal.SIGKILL), ended.errors
        return ended.code != 0

    def killed_at(self, which: int, step: int) -> bool:
        """Kill an ingest of one of the folders at a step of publishing; whether it got there."""
        ended = Ingest(self.home.root, self.saved[which], die_at, step).ended()
        self.require_sound()
        assert ended.code in (0, -signal.SIGKILL), ended.errors
        return ended.code != 0

    def require_sound(self) -> None:
        """See that the pointer, if there is one yet, names a whole snapshot with the content of one of the folders."""
        latest = snapshots.latest(self.home) if (self.home.snapshots / "latest.json").exists() else None
        if latest is not None:
            damage = list(snapshots.damage_of(self.home, latest))
            assert damage == [], damage
            assert latest.manifest["content_digest"] in self.contents, latest.folder

    def require_settled(self, which: int) -> None:
        """Ingest one of the folders undisturbed, and see that it has the content it must have and nothing is left."""
        require_settled(self.home, self.saved[which], self.contents[which])


def require_settled(home: Home, saved: Path, wanted: str) -> None:
    """Ingest a folder undisturbed, and see that the home has the content it must have and nothing is left."""
    ended = ingested(home.root, saved)
    assert ended.code == 0, ended.errors
    found = content(home)
    assert found == wanted, f"{found} is published, and not {wanted}"
    left = [*leftovers(home), *snapshots.damage_of(home, snapshots.required(home))]
    assert left == [], left
    originals = [path for path in saved.rglob("*") if path.is_file()]
    assert all(RawStore(home.raw).is_whole(f"sha256:{files.sha256(path)}") for path in originals)


def content(home: Home) -> str:
    """Content digest of the latest snapshot."""
    return str(snapshots.required(home).manifest["content_digest"])


def leftovers(home: Home) -> list[str]:
    """What an ingest that ended well must not leave behind, nor any before it."""
    known = {entry.snapshot_id for entry in history.read(snapshots.history_path(home))[0]}
    found = [str(path) for path in home.root.rglob(f"{files.ASIDE}*")]
    found += [str(one.folder) for one in snapshots.published(home) if one.folder.name not in known]
    found += [str(path) for path in (snapshots.draft_folder(home), home.root / "lock.json") if path.exists()]
    found += [f"run {run_id} is {status}" for run_id, status in runs(home) if status not in _ENDED]
    return found + list(snapshots.damage_beside(home))


def runs(home: Home) -> list[tuple[str, str]]:
    """Id and status of each run that Dagster knows of, newest first."""
    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        return [(run.run_id, run.status.value) for run in instance.get_runs()]


def forget(home: Home) -> None:
    """Remove all snapshots but the latest."""
    entries = history.read(snapshots.history_path(home))[0]
    now = max(entry.latest_at for entry in entries) + 2 * history.READERS
    life.prune(home, daily=0, monthly=0, now=now)
