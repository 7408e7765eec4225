"""One seeded generator of a whole corpus, laid out as saved upstream data: for the demo, the tests and the benchmarks.

python -m replica.corpus FOLDER [--seed 1] [--scale 0.01] [--no-traps] [--code]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from replica.expectations import Corpus, Expectation, FileCounts, hostile_text
from replica.kernelbot_corpus import write_kernelbot
from replica.sol_corpus import write_sol_execbench

__all__ = ["Corpus", "Expectation", "FileCounts", "hostile_text", "write_corpus"]


def write_corpus(
    folder: Path,
    *,
    seed: int = 1,
    scale: float = 0.01,
    traps: bool = True,
    code: bool = False,
    boards: list[dict[str, Any]] | None = None,
) -> Corpus:
    """Writes `kernelbot/*.parquet` and `sol_execbench/**.json` below `folder`, and says what must come out of them.

    One seed, scale and choice of options always gives the same bytes. At scale 1 the row counts are the real ones
    (about 532,000 rows over eleven Parquet files, 235 kernels). `traps` adds a fixed number of odd rows and two odd
    files; `code` fills the source texts (about 10 kB a row, 100 kB on the linear-algebra boards). `boards` are the
    facts of the KernelBot boards as documents, by default the project's own. Raises ValueError below scale 0.001.
    """
    if scale < 0.001:
        raise ValueError(f"scale {scale} is below 0.001: too few rows for one of each kind")
    if boards is None:
        from assets.kernelbot.facts import boards_as_documents

        boards = boards_as_documents()
    corpus = Corpus(Path(folder), seed, scale, traps, code)
    write_kernelbot(corpus, {board["leaderboard"]: board for board in boards})
    write_sol_execbench(corpus)
    return corpus


def main(arguments: list[str] | None = None) -> None:
    """Writes a corpus and prints one line for each file: rows read, kept, duplicate and rejected, and runs."""
    parser = argparse.ArgumentParser(prog="python -m replica.corpus", description="Write a made-up corpus.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--traps", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--code", action="store_true", help="fill the source texts")
    options = parser.parse_args(arguments)
    corpus = write_corpus(
        options.folder, seed=options.seed, scale=options.scale, traps=options.traps, code=options.code
    )
    for (_, locator), counts in corpus.files.items():
        if locator.endswith(".parquet"):
            print(
                f"{locator}: {counts.rows_read} rows, {counts.rows_kept} kept, {counts.rows_duplicate} duplicate, "
                f"{counts.rows_rejected} rejected, {counts.runs} runs"
            )
    answers = [counts for (_, locator), counts in corpus.files.items() if locator.endswith(".json")]
    print(f"{len(answers)} answers: {sum(counts.rows_read for counts in answers)} rows")


if __name__ == "__main__":
    main()
