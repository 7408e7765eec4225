"""How long a published snapshot takes to open and to answer.

python -m benchmarks.queries SNAPSHOT
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from warehouse.statements import statement

# Each answer is asked for so many cohorts or digests, small ones and large ones.
ASKED = 20
_COHORTS = "select comparison_key from cohorts order by hash(comparison_key) limit $asked"
_LARGEST = "select comparison_key from cohorts order by runs desc limit $asked"
_DIGESTS = "select run_digest from run_lookup order by hash(run_digest) limit $asked"
_LEADERBOARD = """
    select run_id, primary_value from runs where comparison_key = $key and eligible order by primary_value limit 20
"""
_RUN_ID = "select run_id from run_lookup where run_digest = $digest"


def main() -> None:
    """Print the times of the snapshot in the folder that the first argument names."""
    for name, milliseconds in answer_times(Path(sys.argv[1])).items():
        print(f"{name:48} {milliseconds:7.1f} ms")


def answer_times(snapshot: Path) -> dict[str, float]:
    """Median milliseconds of opening a snapshot's DuckDB file and of what is asked of it, each asked before once."""
    path = str(snapshot / "kernelmart.duckdb")
    opening = []
    for _ in range(ASKED):
        started = time.perf_counter()
        duckdb.connect(path, read_only=True).close()
        opening.append(time.perf_counter() - started)
    with duckdb.connect(path, read_only=True) as connection:

        def keys(text: str) -> list[str]:
            return [key for (key,) in connection.execute(text, {"asked": ASKED}).fetchall()]

        cohorts, digests = keys(_LARGEST) + keys(_COHORTS), keys(_DIGESTS)
        places = statement("queries/board_rows")
        return {
            "opening the file": 1e3 * median(opening),
            "a cohort's best runs": _median(connection, _LEADERBOARD, ({"key": key} for key in cohorts)),
            "a leaderboard with authors, as `top` shows it": _median(
                connection, places, ({"comparison_key": key, "every_run": False, "limit": 20} for key in cohorts)
            ),
            "a run's id by its digest": _median(connection, _RUN_ID, ({"digest": digest} for digest in digests)),
            "a run's row by its digest": _median(
                connection, f"from runs where run_id = ({_RUN_ID})", ({"digest": digest} for digest in digests)
            ),
        }


def _median(connection: duckdb.DuckDBPyConnection, text: str, asked: Iterable[Mapping[str, Any]]) -> float:
    times = []
    for parameters in asked:
        connection.execute(text, dict(parameters)).fetchall()
        started = time.perf_counter()
        connection.execute(text, dict(parameters)).fetchall()
        times.append(time.perf_counter() - started)
    return 1e3 * median(times)


if __name__ == "__main__":
    main()
