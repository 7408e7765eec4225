"""`kernelmart snapshots diff`: what one snapshot says that another did not."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import as_json, fields, printed, refused, run, table
from tests.small_snapshot import BOARD, HOSTILE, KERNEL, MI300X, case_result, publish, run_id, small_results
from warehouse.home import Home
from warehouse.snapshots import required

KINDS = {"record": 1, "entered": 1, "rose": 1, "fell": 1, "changed": 1, "left": 2, "withdrawn": 1}


@dataclass(frozen=True)
class Two:
    """A home with two snapshots, and their ids."""

    home: Path
    first: str
    second: str

    def diff(self, *words: str) -> Any:
        return as_json(self.home, "snapshots", "diff", *words)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    """On case 0 one run is faster than the best, one is slow, one has another value, one is revoked and one is gone;
    of the kernel of SOL-ExecBench the best is gone."""
    folder = tmp_path_factory.mktemp("two")
    first = required(publish(folder)).snapshot_id
    changes: dict[str, dict[str, Any]] = {
        run_id(30702): {"primary_value": 4200000.0},
        run_id(20000): {"status": "revoked", "passed": False, "revoked": True},
    }
    gone = {run_id(10000), "sol-execbench:submission/6683"}
    rows = [{**row, **changes.get(row["run_id"], {})} for row in small_results() if row["run_id"] not in gone]
    rows.append(case_result(31000, 0, 4000000.0, "2025-07-01T00:00:00"))
    rows.append(case_result(31001, 0, 9500000.0, "2025-07-02T00:00:00"))
    second = required(publish(folder, rows)).snapshot_id
    assert first != second
    return Two(folder, first, second)


def test_every_movement_is_named_with_rank_and_value_before_and_after(two: Two) -> None:
    found = two.diff(two.first, two.second)
    assert found["counts"] == KINDS
    names = ("kind", "run_id", "author", "rank_before", "rank_after", "value_before", "value_after")
    assert [tuple(row[name] for name in names) for row in found["movements"]] == [
        ("record", run_id(31000), "KernelBot user 1", None, 1, None, 4000000),
        ("entered", run_id(31001), "KernelBot user 1", None, 5, None, 9500000),
        ("changed", run_id(30702), "KernelBot user 302", 1, 3, 4109150, 4200000),
        ("left", run_id(10000), "KernelBot user 44", 4, None, 9000000, None),
        ("withdrawn", run_id(20000), HOSTILE, 3, None, 4233229, None),
        ("fell", run_id(30900), "KernelBot user 44", 3, 4, 4233229, 4233229),
        ("left", "sol-execbench:submission/6683", "solver-0ab8094f", 1, None, 143901, None),
        ("rose", "sol-execbench:submission/29858", "one", 2, 1, 200000, 200000),
    ]


def test_every_movement_says_its_board_and_how_the_best_changed(two: Two) -> None:
    rows = two.diff(two.first, two.second)["movements"]
    boards = ("source", "problem", "case_index", "gpu", "runner", "version", "unit", "best_before", "best_after")
    assert {tuple(row[name] for name in boards) for row in rows} == {
        ("gpumode-kernelbot", BOARD, 0, MI300X, MI300X, None, "ns", 4109150, 4000000),
        ("sol-execbench", KERNEL, None, "NVIDIA B200", "B200", "v1.0", "ns", 143901, 200000),
    }
    assert len({row["comparison_key"] for row in rows}) == 2
    # A run that was withdrawn has no document any more, but had one when it stood.
    assert all(row["run_digest"] for row in rows)
    assert rows[4]["author_key"] == "gpumode-kernelbot:user/666"
    assert [row["movements_on_board"] for row in rows] == [6] * 6 + [2] * 2


def test_the_two_snapshots_and_their_numbers_of_rows_are_stated(two: Two) -> None:
    found = two.diff(two.first, two.second)
    assert (found["before"]["snapshot_id"], found["after"]["snapshot_id"]) == (two.first, two.second)
    assert found["before"]["content_digest"] != found["after"]["content_digest"]
    assert found["after"]["ranking_policy"] == "ranking-v1"
    assert {row["table"]: (row["before"], row["after"]) for row in found["tables"]} == {
        "ranks": (11, 10),
        "run_lookup": (11, 10),
        "records": (9, 7),
    }


def test_the_page_has_a_summary_and_a_table_for_each_board(two: Two) -> None:
    page = printed(two.home, "snapshots", "diff", two.first, two.second)
    assert page.splitlines()[0] == f"From {two.first} to {two.second}"
    assert {name: int(fields(page)[name.capitalize()]) for name in KINDS} == KINDS
    assert table(page, "table") == [
        ["ranks", "11", "10", "-1"],
        ["records", "9", "7", "-2"],
        ["run_lookup", "11", "10", "-1"],
    ]
    board, kernel = page.split(f"\n{BOARD} · case 0 · {MI300X}\n")[1].split(f"\n{KERNEL} · NVIDIA B200 · stack v1.0\n")
    assert board.startswith("best 4.11 ms → 4.00 ms; board sha256:")
    rows = table(board, "movement")
    assert [row[:-1] for row in rows if row[0] != "withdrawn"] == [
        ["record", "KernelBot user 1", "– → 1", "– → 4.00 ms"],
        ["entered", "KernelBot user 1", "– → 5", "– → 9.50 ms"],
        ["changed", "KernelBot user 302", "1 → 3", "4.11 ms → 4.20 ms"],
        ["left", "KernelBot user 44", "4 → –", "9.00 ms → –"],
        ["fell", "KernelBot user 44", "3 → 4", "4.23 ms"],
    ]
    assert rows[4][0] == "withdrawn"
    assert rows[4][1].startswith(r"\x1b[31mred\x1b[0m \u202e[bold]right")
    assert rows[4][2:4] == ["3 → –", "4.23 ms → –"]
    assert kernel.startswith("best 144 µs → 200 µs; board sha256:")
    assert [row[:-1] for row in table(kernel, "movement")] == [
        ["left", "solver-0ab8094f", "1 → –", "144 µs → –"],
        ["rose", "one", "2 → 1", "200 µs"],
    ]


def test_the_latest_snapshot_is_compared_with_unless_another_is_named(two: Two) -> None:
    assert two.diff(two.first) == two.diff(two.first, two.second)


def test_the_other_way_round_those_who_left_enter(two: Two) -> None:
    assert two.diff(two.second, two.first)["counts"] == {
        **dict.fromkeys(KINDS, 0), "entered": 2, "record": 1, "rose": 1, "changed": 1, "fell": 1, "left": 2
    }  # fmt: skip


def test_a_snapshot_does_not_differ_from_itself(two: Two) -> None:
    found = two.diff(two.second)
    assert (found["movements"], found["tables"], set(found["counts"].values())) == ([], [], {0})
    lines = printed(two.home, "snapshots", "diff", two.second).splitlines()
    assert lines[1] == "the two say the same"
    assert len(lines) == 2 + 1 + len(KINDS)


def test_of_each_board_no_more_movements_are_named_than_asked_for_but_all_are_counted(two: Two) -> None:
    found = two.diff(two.first, "--limit", "2")
    assert [row["kind"] for row in found["movements"]] == ["record", "entered", "left", "rose"]
    assert found["counts"] == KINDS
    page = printed(two.home, "snapshots", "diff", two.first, "--limit", "2")
    assert page.count("2 of 6 movements; --limit or --json gives more") == 1
    assert page.count("--limit or --json") == 1
    assert "--limit or --json" not in printed(two.home, "snapshots", "diff", two.first)
    assert "1 of 2 movements; " in printed(two.home, "snapshots", "diff", two.first, "--limit", "1")


def test_a_snapshot_goes_by_the_beginning_of_its_id_if_no_other_begins_so(two: Two) -> None:
    length = next(n for n in range(1, 99) if two.first[:n] != two.second[:n])
    assert two.diff(two.first[:length], two.second[:length]) == two.diff(two.first, two.second)
    assert refused(two.home, "snapshots", "diff", two.first[:4]) == (
        f"{two.home}: {two.first[:4]} is the beginning of several snapshots; name one of "
        f"{', '.join(sorted((two.first, two.second)))}"
    )
    text = printed(two.home, "snapshots", "verify", two.first[:length])
    assert text.startswith(f"{two.first}: all ")


@pytest.mark.parametrize("name", ["other", "", "latest", "."])
def test_an_unknown_snapshot_is_one_line(two: Two, name: str) -> None:
    says = f"{two.home}: there is no snapshot {name}; 'kernelmart snapshots list' lists them"
    assert refused(two.home, "snapshots", "diff", name) == says
    assert refused(two.home, "snapshots", "diff", two.first, name) == says
    assert len(run(two.home, "snapshots", "diff", name).stderr.splitlines()) == 1


def test_a_home_without_snapshots_is_one_line(tmp_path: Path) -> None:
    assert refused(tmp_path, "snapshots", "diff", "x").startswith(f"{tmp_path}: there is no snapshot x; ")


@pytest.fixture
def copy(two: Two, tmp_path: Path) -> Path:
    """The home to damage."""
    shutil.copytree(two.home, tmp_path / "home", symlinks=True)
    for path in (tmp_path / "home" / "snapshots").rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    return tmp_path / "home"


def restated(home: Path, snapshot_id: str, **members: Any) -> None:
    path = Home(home).snapshots / snapshot_id / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


@pytest.mark.parametrize("older", [True, False])
def test_a_snapshot_of_another_major_schema_is_refused_in_one_line(two: Two, copy: Path, older: bool) -> None:
    snapshot = two.first if older else two.second
    restated(copy, snapshot, schema_version="2.0.0")
    assert refused(copy, "snapshots", "diff", two.first).startswith(
        f"snapshot {snapshot} has schema 2.0.0, and only snapshots of schema 1 can be compared; "
    )


def test_a_snapshot_of_another_minor_schema_is_compared(two: Two, copy: Path) -> None:
    manifest = json.loads((Home(copy).snapshots / two.second / "manifest.json").read_text())
    tables = {**manifest["tables"], "predictions": {"rows": 7, "digests": {}}}
    restated(copy, two.second, schema_version="1.9.0", tables=tables)
    found = as_json(copy, "snapshots", "diff", two.first)
    assert found["counts"] == KINDS
    assert {"table": "predictions", "before": None, "after": 7} in found["tables"]
    assert ["predictions", "–", "7", "+7"] in table(printed(copy, "snapshots", "diff", two.first), "table")


def test_snapshots_of_two_policies_are_refused_in_one_line(two: Two, copy: Path) -> None:
    restated(copy, two.first, ranking_policy="ranking-v0")
    assert refused(copy, "snapshots", "diff", two.first) == (
        f"snapshot {two.first} is ranked by ranking-v0 and {two.second} by ranking-v1; compare snapshots of one policy"
    )
    restated(copy, two.second, ranking_policy="ranking-v0")
    assert "no ranking policy 'ranking-v0'; there are: ranking-v1" in refused(copy, "snapshots", "diff", two.first)


def test_a_damaged_file_is_one_line(two: Two, copy: Path) -> None:
    (file,) = (Home(copy).snapshots / two.first / "parquet" / "ranks").glob("*.parquet")
    file.write_bytes(b"no parquet")
    line = refused(copy, "snapshots", "diff", two.first)
    assert str(file) in line
    assert line.endswith("'kernelmart snapshots verify' says which snapshot is damaged")
