"""The demo: a made-up corpus is written, ingested and read, with the commands that a user types."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from replica.corpus import write_corpus

FOLDER = Path("data") / "demo"


def main() -> None:
    """Write the corpus, ingest it into a home of its own, and show a leaderboard and a record."""
    saved, home = FOLDER / "saved", FOLDER / "home"
    print(f"Writing a made-up corpus to {saved}")
    corpus = write_corpus(saved, scale=0.01)
    rows = sum(counts.rows_read for counts in corpus.files.values())
    print(f"{rows} rows in {len(corpus.files)} files\n")
    _run("ingest", "--from", str(saved), "--home", str(home))
    _run("top", "amd-fp8-mm", "--gpu", "MI300X", "--case", "0", "--limit", "5", "--home", str(home))
    _run("show", "gpumode-kernelbot:submission/29858/run/5001/benchmark/0", "--home", str(home))
    _run("sql", "select problem, gpu, runs, authors, best_value, unit from cohorts, unnest(problems) as t(problem) "
         "order by runs desc limit 5", "--home", str(home))  # fmt: skip
    _run("path", "--home", str(home))


def _run(*words: str) -> None:
    print(f"$ kernelmart {shlex.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "pipelines.cli", *words], check=True)  # noqa: S603
    print(flush=True)


if __name__ == "__main__":
    main()
