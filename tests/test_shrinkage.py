"""A source or a board that loses more than a tenth of what it had is not published unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.shrinkage import losses, require_no_losses
from tests.tables import arrow
from warehouse import parquet
from warehouse.contracts import TABLES
from warehouse.errors import SnapshotError
from warehouse.snapshots import Snapshot

KERNELBOT, SOL = "gpumode-kernelbot", "sol-execbench"
# Of each source and board: its submissions, its runs, and how many of those are eligible.
Boards = dict[tuple[str, str], tuple[int, int, int]]


def snapshot(folder: Path, boards: Boards) -> Snapshot:
    submissions = [
        {"source": source, "problem": problem} for (source, problem), (count, _, _) in boards.items()
        for _ in range(count)
    ]  # fmt: skip
    runs = [
        {"source": source, "problem": problem, "eligible": number < eligible}
        for (source, problem), (_, count, eligible) in boards.items() for number in range(count)
    ]  # fmt: skip
    for name, rows in (("submissions", submissions), ("runs", runs)):
        table = arrow(TABLES[name], rows)
        parquet.write_parquet(folder / "parquet" / name / "all.parquet", table.to_batches(), table.schema)
    return Snapshot(folder)


def lost(folder: Path, before: Boards, now: Boards) -> list[str]:
    return losses(snapshot(folder / "before", before), snapshot(folder / "now", now))


def test_a_tenth_may_go_and_more_may_not(tmp_path: Path) -> None:
    before: Boards = {(KERNELBOT, "a"): (100, 1000, 500)}
    assert lost(tmp_path / "1", before, {(KERNELBOT, "a"): (90, 900, 450)}) == []
    assert lost(tmp_path / "2", before, {(KERNELBOT, "a"): (89, 900, 450)}) == [
        f"{KERNELBOT} has lost 11 of its 100 submissions", f"{KERNELBOT}, board a, has lost 11 of its 100 submissions"
    ]  # fmt: skip
    assert lost(tmp_path / "3", before, {(KERNELBOT, "a"): (90, 899, 450)})[0] == (
        f"{KERNELBOT} has lost 101 of its 1000 runs"
    )
    assert lost(tmp_path / "4", before, {(KERNELBOT, "a"): (90, 900, 449)})[0] == (
        f"{KERNELBOT} has lost 51 of its 500 eligible runs"
    )


def test_a_board_may_not_hide_behind_its_source(tmp_path: Path) -> None:
    before: Boards = {(KERNELBOT, "a"): (10, 1000, 1000), (KERNELBOT, "b"): (10, 10, 10), (SOL, "b"): (10, 10, 10)}
    now: Boards = {(KERNELBOT, "a"): (10, 2000, 2000), (KERNELBOT, "b"): (10, 10, 8), (SOL, "b"): (10, 10, 10)}
    assert lost(tmp_path, before, now) == [f"{KERNELBOT}, board b, has lost 2 of its 10 eligible runs"]


def test_a_board_and_a_source_that_are_gone_are_named(tmp_path: Path) -> None:
    before: Boards = {(KERNELBOT, "a"): (1000, 1000, 0), (KERNELBOT, "b"): (1, 1, 0), (SOL, "c"): (1, 1, 0)}
    assert lost(tmp_path, before, {(KERNELBOT, "a"): (1000, 1000, 0)}) == [
        f"{KERNELBOT}, board b, has lost 1 of its 1 runs",
        f"{KERNELBOT}, board b, has lost 1 of its 1 submissions",
        f"{SOL} has lost 1 of its 1 runs",
        f"{SOL} has lost 1 of its 1 submissions",
        f"{SOL}, board c, has lost 1 of its 1 runs",
        f"{SOL}, board c, has lost 1 of its 1 submissions",
    ]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    files_before = [
        (KERNELBOT, "a.parquet"), (KERNELBOT, "b.parquet"), (KERNELBOT, "c.parquet"), (SOL, "kernels/x.json"),
        (SOL, "submissions/1.json"),
    ]  # fmt: skip
    found = []
    for name, kept in (("1", files_before[2:]), ("2", files_before[1:]), ("3", files_before[:4])):
        before = snapshot(tmp_path / name / "before", {(KERNELBOT, "a"): (0, 9, 0), (SOL, "x"): (0, 9, 0)})
        now = snapshot(tmp_path / name / "now", {(KERNELBOT, "a"): (0, 5, 0), (SOL, "x"): (0, 5, 0)})
        for one, there in ((before, files_before), (now, kept)):
            rows = [{"source": source, "locator": locator} for source, locator in there]
            table = arrow(TABLES["source_files"], rows)
            parquet.write_parquet(one.folder / "parquet/source_files/all.parquet", table.to_batches(), table.schema)
        found.append(losses(before, now))
    lost = f"{KERNELBOT} has lost 4 of its 9 runs"
    assert [lines[0] for lines in found] == [
        f"{lost}: {KERNELBOT} no longer has a.parquet and 1 more", f"{lost}: {KERNELBOT} no longer has a.parquet", lost
    ]  # fmt: skip
    assert (
        found[0][1] == f"{KERNELBOT}, board a, has lost 4 of its 9 runs: {KERNELBOT} no longer has a.parquet and 1 more"
    )
    assert f"{SOL} has lost 4 of its 9 runs" in found[2]


def test_what_grows_or_begins_loses_nothing(tmp_path: Path) -> None:
    assert lost(tmp_path / "1", {}, {(KERNELBOT, "a"): (5, 5, 5)}) == []
    assert (
        lost(tmp_path / "2", {(KERNELBOT, "a"): (5, 5, 0)}, {(KERNELBOT, "a"): (6, 7, 1), (SOL, "b"): (1, 1, 1)}) == []
    )


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    before: Boards = {(KERNELBOT, f"board {number:02}"): (0, 1, 0) for number in range(40)}
    found = lost(tmp_path, before, {})
    assert len(found) == 21
    assert found[-1] == "there are more than these 20"


def test_the_refusal_says_what_is_lost_and_how_to_take_it_all_the_same(tmp_path: Path) -> None:
    before = snapshot(tmp_path / "before", {(KERNELBOT, "a"): (10, 10, 10)})
    now = snapshot(tmp_path / "now", {(KERNELBOT, "a"): (10, 5, 5)})
    with pytest.raises(SnapshotError) as refusal:
        require_no_losses(before, now)
    assert str(refusal.value) == (
        f"{KERNELBOT} has lost 5 of its 10 runs (and 3 more); nothing was published, "
        "'kernelmart ingest --accept-loss' takes it as it is"
    )
    require_no_losses(None, now)
    require_no_losses(now, before)
