"""How quickly sources are digested beside a bare scan that hashes each value, and looked through for techniques.

python -m benchmarks.sources [--rows 40000]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from assets.submission_sources import read
from assets.submission_sources.artifacts import describe
from assets.submission_sources.lexing import lex
from assets.submission_sources.techniques import located, proven
from replica.source_texts import SourceTexts
from warehouse.raw import RawFile

ROUNDS = 3
TEXT_BYTES = 9_700
# Of techniques, so many texts are enough.
TEXTS = 3_000


def main() -> None:
    """Write a file whose sources are one row group, then time each job in turn, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = _write(Path(folder, "submissions.parquet"), given.rows)
        jobs: dict[str, Callable[[], float]] = {
            "digests of the sources, rows/s": lambda: _digests(file, given.rows),
            "a bare scan that hashes, rows/s": lambda: _bare(file, given.rows),
            "techniques, MB/s": lambda: _techniques(file),
        }
        # In a process of its own, since this one has held all texts.
        with ProcessPoolExecutor(1, get_context("spawn")) as other:
            peak = other.submit(_resident, file, given.rows).result()
        rates: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(ROUNDS):
            for name, job in jobs.items():
                rates[name].append(job())
        medians = {name: statistics.median(found) for name, found in rates.items()}
        print(f"{given.rows} rows of about {TEXT_BYTES} bytes in one row group, medians of {ROUNDS}")
        for name, median in medians.items():
            print(f"{name:34}{median:12.1f}")
        ours, bare, _ = medians.values()
        print(f"{'digests beside the bare scan':34}{ours / bare:12.2f}")
        print(f"{'resident when all are digested':34}{peak:9.0f} MB")


def _write(path: Path, rows: int) -> RawFile:
    """A submissions file with made-up sources; pieces are written as they are made, in one row group."""
    texts, chance = SourceTexts(1), random.Random(1)  # noqa: S311
    made = [
        pa.array(
            [texts.text(chance, row, TEXT_BYTES) for row in range(first, min(first + 2000, rows))], pa.large_string()
        )
        for first in range(0, rows, 2000)
    ]
    table = pa.table({"submission_id": pa.array(range(rows)), "code": pa.chunked_array(made)})
    pq.write_table(table, path, row_group_size=rows)
    return RawFile(path.name, path, "sha256:" + "0" * 64, path.stat().st_size, datetime.now(UTC))


def _digests(file: RawFile, rows: int) -> float:
    started = time.monotonic()
    assert sum(batch.num_rows for batch in read.digests(file)) == rows
    return rows / (time.monotonic() - started)


def _resident(file: RawFile, rows: int) -> float:
    """Megabytes that a process holds at most while it digests all sources."""
    _digests(file, rows)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _bare(file: RawFile, rows: int) -> float:
    started = time.monotonic()
    found = 0
    parquet = pq.ParquetFile(file.path, pre_buffer=False, buffer_size=1 << 20)
    for batch in parquet.iter_batches(batch_size=1024, columns=["submission_id", "code"]):
        for value in batch.column("code"):
            hashlib.sha256(value.as_buffer()).hexdigest()
            found += 1
    assert found == rows
    return rows / (time.monotonic() - started)


def _techniques(file: RawFile) -> float:
    texts = [text for _, text in read.texts(file, range(min(TEXTS, pq.read_metadata(file.path).num_rows)))]
    started = time.monotonic()
    for text, places in located(texts):
        lexed = lex(text)
        proven(lexed, describe(lexed).language, places)
    return sum(map(len, texts)) / 1e6 / (time.monotonic() - started)


if __name__ == "__main__":
    main()
