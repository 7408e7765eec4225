"""How quickly sources are digested beside a bare scan that hashes each value, looked through for techniques, and
sketched; and what a whole ingest of them holds in memory at most.

python -m benchmarks.sources [--rows 40000] [--rounds 3]

With --rows 231307 the file is as large as the largest real one.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from assets.submission_sources import families, read
from assets.submission_sources.artifacts import describe
from assets.submission_sources.lexing import lex
from assets.submission_sources.techniques import located, proven
from benchmarks.jobs import run_apart
from replica.kernelbot_schemas import AGGREGATE
from replica.source_texts import SourceTexts
from warehouse.raw import RawFile

TEXT_BYTES = 9_700
# Of techniques and sketches, so many texts are enough.
TEXTS = 3_000
BOARDS = ("nvfp4_gemv", "nvfp4_gemm", "nvfp4_dual_gemm", "nvfp4_group_gemm")
_AUTHORS = 2_000


class Took(NamedTuple):
    """Seconds, and those of processors, that something took, and how much of it there was."""

    seconds: float
    processor: float
    amount: float


def main() -> None:
    """Write a file whose sources are one row group, time each job in turn, ingest it, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelmart-bench-") as folder:
        saved = Path(folder, "saved")
        file = _write(saved / "kernelbot" / "nvidia_nvfp4_submissions.parquet", given.rows)
        ingest = run_apart("ingest", Path(folder, "home"), saved, "index")
        jobs: dict[str, Callable[[], float]] = {
            "digests, rows": lambda: _digests(file),
            "bare scan that hashes, rows": lambda: _bare(file),
            "techniques, MB": lambda: _techniques(texts),
            "sketches, MB": lambda: _sketches(texts),
        }
        texts = [text for _, text in read.texts(file, range(min(TEXTS, given.rows)))]
        took: dict[str, list[Took]] = {name: [] for name in jobs}
        for _ in range(given.rounds):
            for name, job in jobs.items():
                took[name].append(_timed(job))
    print(f"{given.rows} rows of about {TEXT_BYTES} bytes in one row group, medians of {given.rounds}")
    for name, rounds in took.items():
        by_clock = statistics.median(one.amount / one.seconds for one in rounds)
        by_processor = statistics.median(one.amount / one.processor for one in rounds)
        print(f"{name:30}{by_clock:12.1f} a second {by_processor:12.1f} a second of a processor")
    ours, bare = took["digests, rows"], took["bare scan that hashes, rows"]
    pairs = list(zip(ours, bare, strict=True))
    by_clock = statistics.median(one.seconds / own.seconds for own, one in pairs)
    by_processor = statistics.median(one.processor / own.processor for own, one in pairs)
    print(f"{'digests beside the bare scan':30}{by_clock:12.2f}          {by_processor:12.2f}")
    print(f"{'ingest with --code index':30}{ingest['seconds']:12.1f} s {ingest['processor']:19.1f} s of a processor")
    print(f"{'resident at most':30}{ingest['megabytes']:12.0f} MiB")
    for name, (seconds, _, most) in ingest["stages"].items():
        print(f"  {name:28}{most:12.0f} MiB {seconds:17.1f} s")


def _write(path: Path, rows: int) -> RawFile:
    """A submissions file with made-up sources, half of them of runs that passed."""
    path.parent.mkdir(parents=True)
    texts, chance = SourceTexts(1), random.Random(1)  # noqa: S311
    began = datetime(2025, 11, 10, tzinfo=UTC)
    batches = []
    for first in range(0, rows, 2000):
        numbers = range(first, min(first + 2000, rows))
        passed = [chance.random() < 0.5 for _ in numbers]
        authors = [int(_AUTHORS * chance.random() ** 3) for _ in numbers]
        columns = {
            "submission_id": list(numbers),
            "problem_name": [chance.choice(BOARDS) for _ in numbers],
            "user_id": [f"{10**16 + author}" for author in authors],
            "user_name": [f"user{author}" for author in authors],
            "code_id": list(numbers),
            "file_name": ["submission.py" for _ in numbers],
            "submission_time": [began + timedelta(seconds=30 * number) for number in numbers],
            "status": ["succeeded" if one else "failed" for one in passed],
            "score": [chance.uniform(1e-5, 1e-3) if one else None for one in passed],
            "passed": [one or None for one in passed],
            "mode": ["leaderboard" if one else None for one in passed],
            "runner": ["B200" if one else None for one in passed],
            "code": [texts.text(chance, number, TEXT_BYTES) for number in numbers],
        }
        arrays = [pa.array(columns.get(field.name, [None] * len(numbers)), field.type) for field in AGGREGATE]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=AGGREGATE))
    pq.write_table(pa.Table.from_batches(batches), path, row_group_size=rows)
    return RawFile(path.name, path, "sha256:" + "0" * 64, path.stat().st_size, datetime.now(UTC))


def _timed(job: Callable[[], float]) -> Took:
    started, before = time.monotonic(), time.process_time()
    amount = job()
    return Took(time.monotonic() - started, time.process_time() - before, amount)


def _digests(file: RawFile) -> int:
    return sum(batch.num_rows for batch in read.digests(file))


def _bare(file: RawFile) -> int:
    found = 0
    parquet = pq.ParquetFile(file.path, pre_buffer=False, buffer_size=1 << 20)
    for batch in parquet.iter_batches(batch_size=1024, columns=["submission_id", "code"], use_threads=False):
        for value in batch.column("code"):
            hashlib.sha256(value.as_buffer()).hexdigest()
            found += 1
    return found


def _techniques(texts: list[bytes]) -> float:
    for text, places in located(texts):
        lexed = lex(text)
        proven(lexed, describe(lexed).language, places)
    return sum(map(len, texts)) / 1e6


def _sketches(texts: list[bytes]) -> float:
    for text in texts:
        families.sketch(lex(text))
    return sum(map(len, texts)) / 1e6


if __name__ == "__main__":
    main()
