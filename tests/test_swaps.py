"""Readers in processes of their own, while another process moves the pointer every few milliseconds."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet as pq
import pytest

from tests.small_snapshot import publish
from tests.three_snapshots import COUNTED, Three, publish_more, publish_three
from warehouse import life, snapshots
from warehouse.home import Home

READS = 1_000
ROOT = Path(__file__).resolve().parent.parent
# Goes round the snapshots until it is stopped, and says when it has begun.
SWAP = """
import itertools, sys, time
from warehouse import snapshots
from warehouse.home import Home
home = Home.at(sys.argv[1])
for number, snapshot in enumerate(itertools.cycle(snapshots.published(home))):
    snapshots.point_at(home, snapshot)
    if number == 3:
        print("swapping", flush=True)
    time.sleep(0.003)
"""
# A snapshot's id and what it has of the counted tables, as somebody sees it.
Seen = tuple[str, tuple[int, ...]]


def by_duckdb(folder: Path) -> Seen:
    """What DuckDB sees in the Parquet files of a folder."""
    tables = [duckdb.read_parquet(f"{folder}/parquet/{name}/*.parquet") for name in ("snapshot", *COUNTED)]
    name = tables[0].project("snapshot_id").fetchall()[0][0]
    return name, tuple(table.aggregate("count(*)").fetchall()[0][0] for table in tables[1:])


def by_duckdb_file(folder: Path) -> Seen:
    """What DuckDB sees in the database of a folder, which it opens once."""
    with duckdb.connect(str(folder / "kernelmart.duckdb"), read_only=True) as connection:
        name = connection.execute("select snapshot_id from snapshot").fetchall()[0][0]
        counts = [connection.table(table).aggregate("count(*)").fetchall()[0][0] for table in COUNTED]
        return name, tuple(counts)


def by_polars(folder: Path) -> Seen:
    """What Polars sees in the Parquet files of a folder."""
    frames = [polars.read_parquet(f"{folder}/parquet/{name}/*.parquet") for name in ("snapshot", *COUNTED)]
    return frames[0]["snapshot_id"][0], tuple(frame.height for frame in frames[1:])


def by_pyarrow(folder: Path) -> Seen:
    """What pyarrow sees in the Parquet files of a folder."""
    tables = [pq.read_table(folder / "parquet" / name, partitioning=None) for name in ("snapshot", *COUNTED)]
    return tables[0]["snapshot_id"][0].as_py(), tuple(table.num_rows for table in tables[1:])


def by_commands(folder: Path) -> Seen:
    """What the code of our own commands sees in a home, whose snapshots the folder is one of."""
    with snapshots.required(Home(folder.parent.parent)).open() as connection:
        name = connection.execute("select snapshot_id from snapshot").fetchall()[0][0]
        counts = [connection.table(table).aggregate("count(*)").fetchall()[0][0] for table in COUNTED]
        return name, tuple(counts)


def pointed(home: Path) -> Path:
    """The folder that the pointer names."""
    return home / "snapshots" / str(json.loads((home / "snapshots" / "latest.json").read_text())["path"])


def linked(home: Path) -> Path:
    """The folder that the link leads to, resolved once."""
    return (home / "snapshots" / "latest").resolve(strict=True)


def through_the_link(home: Path) -> Path:
    """The link itself."""
    return home / "snapshots" / "latest"


def read(home: Path, where: Callable[[Path], Path], look: Callable[[Path], Seen], reads: int) -> set[Seen]:
    """All that a reader sees in so many reads, an error being the end of it."""
    return {look(where(home)) for _ in range(reads)}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Three:
    return publish_three(tmp_path_factory.mktemp("swapped"))


@contextmanager
def swapping(home: Home) -> Iterator[None]:
    """Another process moves the pointer of a home all the while."""
    words = [sys.executable, "-c", SWAP, str(home.root)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "swapping\n"
            yield
            assert process.poll() is None
        finally:
            process.kill()


def test_no_reader_ever_sees_two_snapshots_as_one(three: Three) -> None:
    """A thousand reads by the pointer, by three libraries and our commands; by the link, resolved or of one file."""
    ways = [
        (pointed, by_duckdb, 250), (pointed, by_polars, 350), (pointed, by_pyarrow, 350), (pointed, by_commands, 50),
        (linked, by_duckdb, 50), (linked, by_polars, 50), (linked, by_pyarrow, 50),
        (through_the_link, by_duckdb_file, 50),
    ]  # fmt: skip
    assert sum(reads for where, _, reads in ways if where is pointed) >= READS
    context = multiprocessing.get_context("spawn")
    with swapping(three.home), ProcessPoolExecutor(2, mp_context=context) as pool:
        found = [pool.submit(read, three.home.root, *way) for way in ways]
        seen = [one.result(timeout=300) for one in found]
    whole = set(three.counts().items())
    assert len(whole) == 3
    assert [one - whole for one in seen] == [set()] * len(ways)
    assert set().union(*seen) == whole
    life.recover(three.home)
    assert list(snapshots.damage_beside(three.home)) == []


def test_a_reader_with_the_old_file_open_goes_on_undisturbed(tmp_path: Path) -> None:
    home = publish(tmp_path)
    old = snapshots.required(home)
    counts = [old.manifest["tables"][name]["rows"] for name in COUNTED]
    with old.open() as connection, old.parquet("runs")[0].open("rb") as parquet:
        assert publish_more(home, 5) == snapshots.required(home) != old
        # Long after, when nobody is expected to read there any more.
        later = datetime.now(UTC) + timedelta(days=3)
        assert life.prune(home, daily=0, monthly=0, now=later) == [old.folder.name]
        assert not old.folder.exists()
        assert [connection.table(name).aggregate("count(*)").fetchall()[0][0] for name in COUNTED] == counts
        assert connection.execute("select count(*) from leaderboard").fetchall()[0][0] > 0
        assert pq.read_table(parquet).num_rows > 0
