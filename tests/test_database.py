"""How much memory connections get, and what happens where that is too little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from assets import published, ranking
from assets.kernelbot import build
from pipelines.failures import MAKE_ROOM, advised
from pipelines.ingest import ingest
from pipelines.resources import Request
from tests.conftest import SmallHome
from warehouse import drafts, snapshots
from warehouse.database import connect, memory_for, with_enough_memory
from warehouse.home import Home

TOO_LITTLE = 4_000_000
# Bytes and threads.
Given = tuple[int, int | None]


def sorting(temporary: Path, seen: list[Given], *, in_batches: bool = False) -> Callable[[int, int | None], int]:
    """Sorts more than `TOO_LITTLE` and keeps what it was given."""

    def work(memory: int, threads: int | None) -> int:
        seen.append((memory, threads))
        with connect(temporary=temporary, memory=memory, threads=1) as connection:
            sorted_rows = connection.sql("select i::varchar as text from range(400_000) as numbers (i) order by text")
            if in_batches:
                return sum(batch.num_rows for batch in sorted_rows.to_arrow_reader(1024))
            return len(sorted_rows.to_arrow_table())

    return work


@pytest.mark.parametrize(
    ("rows", "memory"),
    [(0, 96_000_000), (231_307, 96_223_712), (500_000, 208_000_000), (721_153, 299_999_648), (10_800_000, 300_000_000)],
)
def test_memory_grows_with_the_rows_up_to_the_limit(rows: int, memory: int) -> None:
    assert memory_for(rows) == memory


@pytest.mark.parametrize("in_batches", [False, True])
def test_where_memory_was_too_little_it_is_done_again_by_one_thread_and_with_the_most(
    tmp_path: Path, in_batches: bool
) -> None:
    seen: list[Given] = []
    assert with_enough_memory(TOO_LITTLE, sorting(tmp_path, seen, in_batches=in_batches)) == 400_000
    assert seen == [(TOO_LITTLE, None), (TOO_LITTLE, 1), (300_000_000, 1)]


def test_what_fails_with_the_most_is_done_with_half_of_it() -> None:
    seen: list[Given] = []

    def work(memory: int, threads: int | None) -> str:
        seen.append((memory, threads))
        if memory > 200_000_000:
            raise duckdb.OutOfMemoryException("Out of Memory Error: failed to pin block (1 MiB/1 MiB used)")
        return "made"

    assert with_enough_memory(300_000_000, work) == "made"
    assert seen == [(300_000_000, None), (300_000_000, 1), (150_000_000, 1)]


def test_what_fails_each_time_fails_for_lack_of_memory() -> None:
    seen: list[Given] = []

    def work(memory: int, threads: int | None) -> None:
        seen.append((memory, threads))
        raise OSError("Out of Memory Error: could not allocate block (1 MiB/1 MiB used)")

    with pytest.raises(OSError, match="Out of Memory"):
        with_enough_memory(TOO_LITTLE, work)
    assert seen == [(TOO_LITTLE, None), (TOO_LITTLE, 1), (300_000_000, 1), (150_000_000, 1)]


def test_another_failure_is_not_tried_again() -> None:
    seen: list[Given] = []

    def work(memory: int, threads: int | None) -> None:
        seen.append((memory, threads))
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        with_enough_memory(TOO_LITTLE, work)
    assert seen == [(TOO_LITTLE, None)]


def test_a_full_disk_is_not_taken_for_too_little_memory(tmp_path: Path) -> None:
    seen: list[Given] = []

    def work(memory: int, threads: int | None) -> int:
        seen.append((memory, threads))
        with connect(temporary=tmp_path, memory=memory, threads=1) as connection:
            connection.execute("set max_temp_directory_size = '1MB'")
            return len(
                connection.sql("select i::varchar as text from range(900_000) as t (i) order by text").fetchall()
            )

    with pytest.raises(duckdb.OutOfMemoryException) as raised:
        with_enough_memory(TOO_LITTLE, work)
    assert seen == [(TOO_LITTLE, None)]
    told = " ".join(str(raised.value).split())
    assert advised(told) == f"DuckDB's temporary files: No space left on device; {MAKE_ROOM}"


def test_a_limit_that_is_set_is_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELMART_MEMORY_LIMIT", "4MB")
    seen: list[Given] = []
    with pytest.raises(duckdb.OutOfMemoryException):
        with_enough_memory(300_000_000, sorting(tmp_path, seen))
    assert seen == [(300_000_000, None), (300_000_000, 1)]


def test_an_ingest_that_had_too_little_memory_makes_the_same_snapshot(
    small_home: SmallHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, usual = small_home.corpus.folder, small_home.home
    tried: list[Given] = []

    def with_little(_: int, work: Callable[[int, int | None], object], threads: int | None = None) -> object:
        def kept(memory: int, threads: int | None) -> object:
            tried.append((memory, threads))
            return work(memory, threads)

        return with_enough_memory(TOO_LITTLE, kept, threads)

    for module in (build, ranking, drafts, published):
        monkeypatch.setattr(module, "with_enough_memory", with_little)
    home = Home(tmp_path / "home")
    assert ingest(home, Request(folder=str(saved))).published
    assert tried == [(TOO_LITTLE, None), (TOO_LITTLE, 1), (300_000_000, 1)] * 4
    digests = [snapshots.required(one).manifest["content_digest"] for one in (home, Home(usual))]
    assert digests[0] == digests[1]
