"""`python -m tests.torture --times 200`: ingests killed at random moments, and what must be true after each."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.killing import Disturbed, forget, runs
from warehouse import files


def torture(disturbed: Disturbed, seed: int, times: int, settle_every: int = 1) -> int:
    """Kill ingests at random moments; how many were killed before they had ended.

    After each, the pointer must name a whole snapshot; after every few, the next ingest must succeed, have the content
    that it has undisturbed, and leave nothing of the others behind.

    Args:
        disturbed: the home, and what is ingested in turns.
        seed: of the moments.
        times: how many are killed.
        settle_every: after how many the next is left alone.
    """
    moments = random.Random(seed)
    killed = 0
    for number in range(1, times + 1):
        which, moment = moments.randrange(2), moments.uniform(0, disturbed.seconds)
        try:
            killed += disturbed.killed(which, moment)
            if number % settle_every == 0 or number == times:
                disturbed.require_settled(1 - which)
                forget(disturbed.home)
        except AssertionError as error:
            # Moments are shares of a time that differs from one machine to another.
            raise AssertionError(f"seed {seed}, ingest {number}, killed after {moment:.3f} s: {error}") from error
    return killed


def main() -> None:
    """Run it and print the seed, by which the same moments come again, and one line; where it fails, the home stays."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Kill ingests at random moments.")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    sys.stdout.flush()
    folder = Path(tempfile.mkdtemp())
    disturbed = Disturbed.made(folder)
    try:
        killed = torture(disturbed, options.seed, options.times)
    except AssertionError as error:
        sys.exit(f"{error}\nthe home is left as it is: {disturbed.home.root}")
    failed = sum(status == "FAILURE" for _, status in runs(disturbed.home))
    files.remove_tree(folder)
    sys.stdout.write(
        f"{options.times} ingests, {killed} of them killed while they ran ({failed} runs marked as failed): after each "
        "the pointer named a whole snapshot, and the next ingest succeeded, had the content that it has undisturbed, "
        "and left nothing behind\n"
    )


if __name__ == "__main__":
    main()
