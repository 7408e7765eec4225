"""How long an ingest takes from saved files to a published snapshot, beside the floor, plain loops and an empty job.

python -m benchmarks.pipeline [--scale 0.1] [--rounds 3] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks import peers
from benchmarks.floor import floor
from replica.corpus import write_corpus

# Peers go row by row; a small corpus tells their rows a second as well.
PEER_SCALE = 0.01
# `--check`: an ingest beyond so many times the floor, or beyond so much memory, has got worse; neither is near.
MOST_TIMES_FLOOR = 12.0
MOST_MEGABYTES = 1_500


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
        write_corpus(root / "small", scale=PEER_SCALE)
        passed = _measure(root, given.rounds, given.scale, with_peers=not given.check)
    if given.check and not passed:
        sys.exit(1)


def _measure(root: Path, rounds: int, scale: float, *, with_peers: bool) -> bool:
    seconds: dict[str, list[float]] = defaultdict(list)
    processor: dict[str, list[float]] = defaultdict(list)
    steps: dict[str, list[float]] = defaultdict(list)
    sizes: dict[str, int] = {}
    runs = megabytes = 0
    for _ in range(rounds):
        _remove(root / "floor")
        before = time.process_time()
        for step in floor(root / "saved", root / "floor"):
            steps[step.name].append(step.seconds)
            sizes[step.name] = step.size_bytes
        processor["floor"].append(time.process_time() - before)
        _remove(root / "home")
        first = _child("ingest", root / "home", root / "saved")
        again = _child("ingest", root / "home", root / "saved")
        empty = _child("empty", root / "empty", root / "saved")
        seconds["floor"].append(sum(times[-1] for times in steps.values()))
        seconds["ingest"].append(first["seconds"] - empty["seconds"])
        seconds["unchanged"].append(again["seconds"] - empty["seconds"])
        seconds["empty job"].append(empty["seconds"])
        processor["ingest"].append(first["processor"] - empty["processor"])
        processor["unchanged"].append(again["processor"] - empty["processor"])
        processor["empty job"].append(empty["processor"])
        runs, megabytes = int(first["runs"]), max(megabytes, int(first["megabytes"]))
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    busy = {name: statistics.median(times) for name, times in processor.items()}
    print(f"scale {scale}, {runs} runs, medians of {rounds}; the empty job's time is taken off the ingests'")
    for name, median in middle.items():
        ratios = f"{median / middle['floor']:8.2f} × floor, {busy[name] / busy['floor']:.2f} × its processor time"
        print(f"{name:16}{median:8.2f} s {ratios}")
    for name, times in steps.items():
        median = statistics.median(times)
        print(f"  floor, {name:16}{median:8.2f} s {sizes[name] / 1e6 / max(median, 1e-9):10.0f} MB/s")
    print(f"runs a second    {runs / middle['ingest']:10.0f}")
    print(f"memory           {megabytes:10} MB resident at most")
    snapshot = max((root / "home" / "snapshots").glob("2*Z-*"))
    size = sum(path.stat().st_size for path in snapshot.rglob("*") if path.is_file())
    print(f"snapshot         {size / runs:10.0f} bytes a run")
    if with_peers:
        own = runs / middle["ingest"]
        for name, peer in (("row by row", peers.row_by_row), ("pandas", peers.with_pandas)):
            started = time.monotonic()
            rate = peer(root / "small") / (time.monotonic() - started)
            print(f"{name:16}{rate:8.0f} runs a second, {own / rate:6.1f} times as many here")
    return busy["ingest"] <= MOST_TIMES_FLOOR * busy["floor"] and megabytes <= MOST_MEGABYTES


def _child(job: str, home: Path, saved: Path) -> dict[str, float]:
    """Run a job in a process of its own, so that its memory is its own; what it said."""
    command = [sys.executable, "-m", "benchmarks.jobs", job, str(home), str(saved)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


def _remove(folder: Path) -> None:
    """Remove a folder, published ones in it too."""
    for path in [folder, *folder.rglob("*")] if folder.exists() else []:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
