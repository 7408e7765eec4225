"""The demo: a made-up corpus is served as both services would, pulled, and read with the commands that a user types."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from replica.corpus import write_corpus
from replica.server import Replica

FOLDER = Path("data") / "demo"


def main() -> None:
    """Serve the corpus, ingest it into a home of its own, and show a leaderboard, a record and where the files are."""
    saved, home = FOLDER / "saved", FOLDER / "home"
    print(f"Writing a made-up corpus to {saved}")
    corpus = write_corpus(saved, scale=0.01)
    rows = sum(counts.rows_read for counts in corpus.files.values())
    print(f"{rows} rows in {len(corpus.files)} files and answers\n")
    with Replica(saved) as replica:
        services = {
            "HF_ENDPOINT": replica.hub_endpoint,
            "KERNELMART_SOL_URL": replica.sol_url,
            "KERNELMART_SOL_INTERVAL_MS": "0",
        }
        print("A replica of both services serves it on this machine:")
        for name, value in services.items():
            print(f"  {name}={value}")
        print()
        _run("ingest", "--home", str(home), **services)
        print(f"{len(replica.requests)} requests, {sum(request.bytes_sent for request in replica.requests)} bytes\n")
    _run("top", "amd-fp8-mm", "--gpu", "MI300X", "--case", "0", "--limit", "5", "--home", str(home))
    _run("show", "gpumode-kernelbot:submission/29858/run/5001/benchmark/0", "--home", str(home))
    _run("sql", "select problem, gpu, runs, authors, best_value, unit from cohorts, unnest(problems) as t(problem) "
         "order by runs desc limit 5", "--home", str(home))  # fmt: skip
    _run("path", "--home", str(home))


def _run(*words: str, **environment: str) -> None:
    print(f"$ kernelmart {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "pipelines.cli", *words]
    subprocess.run(command, check=True, env={**os.environ, **environment})  # noqa: S603
    print(flush=True)


if __name__ == "__main__":
    main()
