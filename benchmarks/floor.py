"""The least that any pipeline of this kind must do, as bare DuckDB: what the product's time is compared with.

It reads the same leaf columns, unnests the cases, hashes as many bytes, ranks, and writes Parquet and a DuckDB file. It
checks nothing, keeps no original, rejects nothing, counts every copy of a run, and knows no document.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.database import connect

_CASE_FIELD = re.compile(r"benchmark\.(\d+)\.(spec|runs|mean|std|best|worst)")
_CASE_NAMES = ("spec", "runs", "mean", "std", "best", "worst")
_SCRIPT = Path(__file__).with_suffix(".sql")


@dataclass(frozen=True)
class Step:
    """What a step took, and how many bytes it read, hashed or wrote."""

    name: str
    seconds: float
    size_bytes: int


def floor(saved: Path, out: Path) -> list[Step]:
    """Take KernelBot's saved files below `saved` through the floor, with the product's settings; files go to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    created, hashed, ranked, runs, ranks, *database = [
        text for text in _SCRIPT.read_text(encoding="utf-8").split(";") if text.strip()
    ]
    with connect(temporary=out) as connection:

        def run(*texts: str) -> float:
            started = time.monotonic()
            for text in texts:
                connection.execute(text.replace("$out", str(out)))
            return time.monotonic() - started

        files = [path for path in sorted((saved / "kernelbot").glob("*.parquet")) if _is_submissions(path)]
        # Views do the reading where the next step asks for it.
        run("create view shown as " + " union all by name ".join(_rows(path) for path in files))
        reading = run(created)
        size = sum(path.stat().st_size for path in files)
        hashing = run(hashed)
        counts = "select count(*) * 1000 + count(distinct (submission_id, runner)) * 600 from floor_digests"
        (hashed_bytes,) = connection.execute(counts).fetchall()[0]
        ranking, parquet, keeping = run(ranked), run(runs, ranks), run(*database)
    written = sum(path.stat().st_size for path in out.glob("*.parquet"))
    return [
        Step("read and unnest", reading, size),
        Step("hash", hashing, hashed_bytes),
        Step("rank", ranking, 0),
        Step("write Parquet", parquet, written),
        Step("write DuckDB", keeping, (out / "floor.duckdb").stat().st_size),
    ]


def _is_submissions(path: Path) -> bool:
    return {"submission_id", "code_id"} <= set(pq.read_schema(path).names)


def _rows(path: Path) -> str:
    """A select of one file's rows, cases as a list."""
    schema = pq.read_schema(path)
    file = f"read_parquet('{path}', file_row_number = true)"
    if "run_result" not in schema.names:
        return (
            "select submission_id, file_row_number as row_id, problem_name as board, runner, mode, passed, "
            f"submission_time::timestamp as observed_at, score, null as cases from {file}"
        )
    return (
        "select submission_id, file_row_number as row_id, leaderboard_id::varchar as board, "
        "run_system_info.gpu as runner, run_mode as mode, run_passed as passed, "
        f"submission_time::timestamp as observed_at, run_score as score, {_cases(schema)} as cases from {file}"
    )


def _cases(schema: pa.Schema) -> str:
    kind = schema.field("run_result").type
    found: dict[int, set[str]] = defaultdict(set)
    for name in (kind.field(i).name for i in range(kind.num_fields)):
        if match := _CASE_FIELD.fullmatch(name):
            found[int(match[1])].add(match[2])
    entries = []
    for index in sorted(found):
        fields = ", ".join(
            f"{name}: " + (f'run_result."benchmark.{index}.{name}"' if name in found[index] else "null::varchar")
            for name in _CASE_NAMES
        )
        present = " is not null or ".join(f'run_result."benchmark.{index}.{name}"' for name in sorted(found[index]))
        entries.append(f"case when {present} is not null then {{index: {index}, {fields}}} end")
    return f"list_filter([{', '.join(entries)}], lambda entry: entry is not null)"
