"""How long ranks, cohorts, records and standings take, beside a bare dense rank over the same rows.

python -m benchmarks.ranking [--runs 1100000] [--cohorts 2000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from assets import ranks
from warehouse.contracts import RANKING_POLICY
from warehouse.database import connect

ROUNDS = 3
FLOOR = """
    select count(rank)
    from (select dense_rank() over (partition by comparison_key order by primary_value) as rank from runs)
"""


def main() -> None:
    """Fill a database, then time each statement and the floor in turn, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_100_000)
    parser.add_argument("--cohorts", type=int, default=2_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.duckdb"
        with connect(path, temporary=Path(folder)) as connection:
            numbers = {"$runs": str(given.runs), "$cohorts": str(given.cohorts)}
            text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
            for name, number in numbers.items():
                text = text.replace(name, number)
            connection.execute(text)
        with connect(path, temporary=Path(folder), threads=2) as connection:
            _measure(connection, given.runs)


def _measure(connection: duckdb.DuckDBPyConnection, runs: int) -> None:
    jobs: dict[str, Callable[[], object]] = {
        "floor": lambda: connection.execute(FLOOR).fetchall(),
        "ranks, cohorts, records": lambda: ranks.rank(connection, RANKING_POLICY),
        "standings": lambda: ranks.standings(connection).read_all(),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            started = time.monotonic()
            job()
            seconds[name].append(time.monotonic() - started)
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    print(f"{runs} runs, medians of {ROUNDS}")
    for name, median in medians.items():
        print(f"{name:26}{median:8.2f} s {median / medians['floor']:8.1f} × floor")
    total = sum(medians.values()) - medians["floor"]
    print(f"{'all of it':26}{total:8.2f} s {total / medians['floor']:8.1f} × floor")


if __name__ == "__main__":
    main()
