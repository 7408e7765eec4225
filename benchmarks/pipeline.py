"""How long an ingest takes from saved files to a published snapshot, beside the floor, plain loops and an empty job.

python -m benchmarks.pipeline [--scale 0.1] [--rounds 3] [--check]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from benchmarks import peers
from benchmarks.floor import floor
from benchmarks.jobs import run_apart
from benchmarks.queries import answer_times
from replica.corpus import write_corpus
from warehouse import files

# Peers go row by row; a small corpus tells their rows a second as well.
PEER_SCALE = 0.01
# The file that changes between two ingests: of those that give runs of their own, the second largest.
CHANGED = "nvidia_nvfp4_submissions.parquet"
# `--check`: an ingest beyond so many times the floor, or beyond so much memory, has got worse; neither is near.
MOST_TIMES_FLOOR = 8.0
MOST_MEGABYTES = 800


class Clock:
    """Seconds, and seconds of processor time, of each thing that was measured, a figure for each round."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._processor: dict[str, list[float]] = defaultdict(list)

    def add(self, what: str, seconds: float, processor: float) -> None:
        """Take the figures of one round."""
        self._seconds[what].append(seconds)
        self._processor[what].append(processor)

    def seconds(self, what: str) -> float:
        """The median over the rounds."""
        return median(self._seconds[what])

    def processor(self, what: str) -> float:
        """The median over the rounds, of processor time."""
        return median(self._processor[what])

    def names(self) -> list[str]:
        """What was measured, in the order in which it first was."""
        return list(self._seconds)


def main() -> None:
    """Measure in turn, print medians and ratios; with `--check`, leave with 1 where a wide limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelmart-bench-") as folder:
        root = Path(folder)
        write_corpus(root / "saved", scale=given.scale)
        if not given.check:
            write_corpus(root / "small", scale=PEER_SCALE)
        measured = _measure(root, given.rounds)
        whole, last = measured.whole, measured.said
        megabytes = max(last["ingest"]["megabytes"], last["one file changed"]["megabytes"])
        print(f"scale {given.scale}, {last['ingest']['runs']} runs, medians of {given.rounds}")
        _print_whole(whole, last["ingest"]["runs"])
        _print_stages(measured.stages, {name: most for name, (_, _, most) in last["ingest"]["stages"].items()})
        _print_steps(measured.steps, measured.sizes)
        print(f"{megabytes:.0f} MiB resident at most")
        if not given.check:
            _print_snapshot(root / "home", last["ingest"]["runs"])
            _print_peers(measured.peers, measured.peer_runs, last["ingest"]["runs"] / whole.seconds("ingest"))
        times = whole.processor("ingest") / whole.processor("floor")
        if given.check and (times > MOST_TIMES_FLOOR or megabytes > MOST_MEGABYTES):
            sys.exit(1)


@dataclass(frozen=True)
class _Measured:
    """Whole jobs, an ingest's stages, the floor's steps with the bytes of each, peers with the runs that each makes,
    and the last words of each ingest."""

    whole: Clock = field(default_factory=Clock)
    stages: Clock = field(default_factory=Clock)
    steps: Clock = field(default_factory=Clock)
    sizes: dict[str, int] = field(default_factory=dict)
    peers: Clock = field(default_factory=Clock)
    peer_runs: dict[str, int] = field(default_factory=dict)
    said: dict[str, dict[str, Any]] = field(default_factory=dict)


def _measure(root: Path, rounds: int) -> _Measured:
    """Everything in turn, round by round; peers where there is a small corpus for them.

    The empty job's time is taken off the ingests'.
    """
    measured = _Measured()
    whole, said = measured.whole, measured.said
    for _ in range(rounds):
        files.remove_tree(root / "floor")
        before = time.process_time()
        steps = floor(root / "saved", root / "floor")
        whole.add("floor", sum(step.seconds for step in steps), time.process_time() - before)
        for step in steps:
            measured.steps.add(step.name, step.seconds, step.seconds)
            measured.sizes[step.name] = step.size_bytes
        files.remove_tree(root / "home")
        empty = run_apart("empty", root / "empty", root / "saved")
        said["ingest"] = run_apart("ingest", root / "home", root / "saved")
        said["nothing changed"] = run_apart("ingest", root / "home", root / "saved")
        with _changed(root / "saved" / "kernelbot" / CHANGED):
            said["one file changed"] = run_apart("ingest", root / "home", root / "saved")
        for what, one in said.items():
            whole.add(what, one["seconds"] - empty["seconds"], one["processor"] - empty["processor"])
        whole.add("empty job", empty["seconds"], empty["processor"])
        for name, (seconds, processor, _) in said["ingest"]["stages"].items():
            measured.stages.add(name, seconds, processor)
        if (root / "small").exists():
            for name, peer in (("row by row", peers.row_by_row), ("pandas", peers.with_pandas)):
                started, before = time.monotonic(), time.process_time()
                measured.peer_runs[name] = peer(root / "small")
                measured.peers.add(name, time.monotonic() - started, time.process_time() - before)
    return measured


def _print_whole(whole: Clock, runs: int) -> None:
    print(f"{'':24} {'seconds':>9} {'× floor':>9} {'processor':>9} {'× floor':>9}")
    for name in whole.names():
        seconds, processor = whole.seconds(name), whole.processor(name)
        ratios = seconds / whole.seconds("floor"), processor / whole.processor("floor")
        print(f"{name:24} {seconds:9.2f} {ratios[0]:9.2f} {processor:9.2f} {ratios[1]:9.2f}")
    print(f"{runs / whole.seconds('ingest'):.0f} runs a second, the floor {runs / whole.seconds('floor'):.0f}")


def _print_stages(stages: Clock, most: dict[str, float]) -> None:
    print("stages of the ingest, seconds, those of processors, and MiB resident at most in the last round:")
    for name in stages.names():
        print(f"  {name:24} {stages.seconds(name):7.1f} {stages.processor(name):7.1f} {most[name]:7.0f}")


def _print_steps(steps: Clock, sizes: dict[str, int]) -> None:
    print("steps of the floor, seconds and MB a second:")
    for name in steps.names():
        rate = f"{sizes[name] / 1e6 / steps.seconds(name):7.0f}" if sizes[name] else ""
        print(f"  {name:24} {steps.seconds(name):7.2f} {rate}")


def _print_snapshot(home: Path, runs: int) -> None:
    snapshot = max((home / "snapshots").glob("2*Z-*"))
    sizes = {path: path.stat().st_size for path in snapshot.rglob("*") if path.is_file()}
    parquet = sum(size for path, size in sizes.items() if path.suffix == ".parquet")
    print(f"snapshot: {sum(sizes.values()) / runs:.0f} bytes a run, {parquet / runs:.0f} of them as Parquet")
    print("answers of the snapshot, milliseconds:")
    for name, milliseconds in answer_times(snapshot).items():
        print(f"  {name:48} {milliseconds:7.1f}")


def _print_peers(clock: Clock, runs: dict[str, int], own: float) -> None:
    for name in clock.names():
        rate = runs[name] / clock.seconds(name)
        print(f"{name}: {rate:.0f} runs a second; the ingest makes {own / rate:.1f} times as many")


@contextmanager
def _changed(path: Path) -> Iterator[None]:
    """While this lasts, a file has one row less, in one row group as before."""
    kept = path.with_suffix(".kept")
    path.rename(kept)
    rows = pq.read_table(kept)
    pq.write_table(rows.slice(0, rows.num_rows - 1), path, compression="snappy", row_group_size=rows.num_rows)
    del rows
    yield
    kept.replace(path)


if __name__ == "__main__":
    main()
