"""One run counts once, whatever files it is in and whatever order they and their rows come in."""

from __future__ import annotations

import itertools
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests import oracle
from tests.kernelbot_folder import Normalised, Row, case, case_row, normalised, result, score_row, table, write


def where(made: Normalised) -> list[tuple[str, str, str]]:
    """Id without its prefix, file and row of each run."""
    prefix = "gpumode-kernelbot:submission/"
    return [
        (run["run_id"].removeprefix(prefix), run["locator"].removesuffix(".parquet"), run["item"]) for run in made.runs
    ]


def content(row: Row) -> str:
    """SHA-256 of what a per-case row says of its run."""
    stated = {name: row[name] for name in ("run_passed", "run_score", "run_result") if row[name] is not None}
    return oracle.digest(stated)[7:]


PRECEDENCE = [
    "submissions",
    "successful_submissions",
    "deduplicated_submissions",
    "deduplicated_successful_submissions",
    "another",
    "yet_another",
]


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise(PRECEDENCE)))
def test_of_two_files_with_one_run_the_first_in_precedence_keeps_it(tmp_path: Path, first: str, second: str) -> None:
    write(tmp_path / "in", second, [case_row(1, 10, case("5000"))])
    write(tmp_path / "in", first, [case_row(1, 10)])
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert where(made) == [("1/run/10/benchmark/0", first, "0")]
    assert made.counts == {f"{first}.parquet": (1, 0), f"{second}.parquet": (0, 1)}
    # The other file's copy is no conflict, whatever it says.
    assert made.conflicts == []


def test_a_run_that_only_another_file_has_is_kept_with_a_conflict(tmp_path: Path) -> None:
    write(tmp_path / "in", "submissions", [case_row(1, 10, user_id=5, file_name="taken.py")])
    strays = [case_row(1, 11, user_id=6, file_name="stray.py"), case_row(2, 12, user_id=7), case_row(1, 10)]
    write(tmp_path / "in", "successful_submissions", [*strays, case_row(3, 13, leaderboard_id=398)])
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert where(made) == [
        ("1/run/10/benchmark/0", "submissions", "0"),
        ("1/run/11/benchmark/0", "successful_submissions", "0"),
        ("2/run/12/benchmark/0", "successful_submissions", "1"),
        ("3/run/13/benchmark/0", "successful_submissions", "3"),
    ]
    # Board 398 is taken from the one file that has it.
    assert [(locator, detail.split(":")[0]) for locator, detail in made.conflicts] == [
        ("successful_submissions.parquet", "submission 1, run/11"),
        ("successful_submissions.parquet", "submission 2, run/12"),
    ]
    submissions = {row["submission_id"]: row for row in made.tables["submissions"]}
    assert len(submissions) == len(made.tables["submissions"]) == 3
    # The taken file speaks for its submissions, the other for those that it alone has.
    assert submissions[1]["file_name"] == "taken.py"
    export = {
        name: oracle.sha256((tmp_path / "in" / f"{name}.parquet").read_bytes())[7:19]
        for name in ("submissions", "successful_submissions")
    }
    assert submissions[1]["author_key"] == f"gpumode-kernelbot:export/{export['submissions']}/5"
    assert submissions[2]["author_key"] == f"gpumode-kernelbot:export/{export['successful_submissions']}/7"
    assert made.counts["successful_submissions.parquet"] == (3, 1)


def test_equal_copies_inside_a_file_are_one_run_without_a_conflict(tmp_path: Path) -> None:
    write(tmp_path / "in", "submissions", [case_row(1, 10), case_row(2, 10), case_row(1, 10), case_row(1, 10)])
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert where(made) == [("1/run/10/benchmark/0", "submissions", "0"), ("2/run/10/benchmark/0", "submissions", "1")]
    assert made.counts == {"submissions.parquet": (2, 2)}
    assert made.conflicts == []


def test_of_differing_copies_the_one_with_the_smallest_content_digest_is_kept(tmp_path: Path) -> None:
    copies = [case_row(1, 10, case(str(1000 + i))) for i in range(6)]
    write(tmp_path / "in", "submissions", copies)
    made = normalised(tmp_path / "in", tmp_path / "out")
    smallest = min(range(6), key=lambda i: content(copies[i]))
    assert where(made) == [("1/run/10/benchmark/0", "submissions", str(smallest))]
    assert made.run["mean_ns"] == 1000.0 + smallest
    assert made.counts == {"submissions.parquet": (1, 5)}
    ((locator, detail),) = made.conflicts
    assert (locator, detail.split(":")[0]) == ("submissions.parquet", "submission 1, run/10")


@pytest.mark.parametrize("absent", [{"run_id": None}, {"run_id": ""}, {}], ids=["null", "empty", "no column"])
def test_a_run_without_an_id_goes_by_its_mode_and_content(tmp_path: Path, absent: Row) -> None:
    rows = [
        case_row(1),
        case_row(1, run_mode="test"),
        case_row(1, run_score=0.5),
        case_row(1),
        case_row(1, run_mode=None),
        case_row(1, run_passed=None, run_score=None, run_result=None),
    ]
    rows = [{name: value for name, value in row.items() if name != "run_id"} | absent for row in rows]
    write(tmp_path / "in", "submissions", rows)
    made = normalised(tmp_path / "in", tmp_path / "out")
    wanted = [
        f"1/run/leaderboard-{content(rows[0])[:12]}/benchmark/0",
        f"1/run/test-{content(rows[1])[:12]}/benchmark/0",
        f"1/run/leaderboard-{content(rows[2])[:12]}/benchmark/0",
        f"1/run/unknown-{content(rows[4])[:12]}/benchmark/0",
        f"1/run/leaderboard-{oracle.sha256('{}')[7:19]}",
    ]
    assert sorted(run_id for run_id, _, _ in where(made)) == sorted(wanted)
    assert made.counts == {"submissions.parquet": (5, 1)}
    assert made.conflicts == []


def test_a_field_that_other_rows_have_is_no_part_of_a_rows_content(tmp_path: Path) -> None:
    row = case_row(1, None)
    write(tmp_path / "alone", "submissions", [row])
    write(tmp_path / "beside", "submissions", [case_row(2, None, run_result=result(case(), case(), check="pass")), row])
    ids = [
        {
            run["run_id"]
            for run in normalised(tmp_path / name, tmp_path / "out" / name).runs
            if ":submission/1/" in run["run_id"]
        }
        for name in ("alone", "beside")
    ]
    assert ids[0] == ids[1] == {f"gpumode-kernelbot:submission/1/run/leaderboard-{content(row)[:12]}/benchmark/0"}


BEST_FIRST = [
    score_row(1, 0.2),
    score_row(1, 0.3),
    score_row(1, None),
    score_row(1, 0.1, passed=False),
    score_row(1, 0.1, passed=None, status="active"),
    score_row(1, 0.1, passed=None, status="failed"),
    score_row(1, 0.01, mode="test"),
    score_row(1, 0.001, mode="test", passed=False),
]


@pytest.mark.parametrize("count", range(2, len(BEST_FIRST) + 1))
def test_of_scores_on_one_runner_the_best_by_mode_verdict_and_score_is_kept(tmp_path: Path, count: int) -> None:
    rows = BEST_FIRST[-count:]
    random.Random(count).shuffle(rows)
    write(tmp_path / "in", "zzz", rows)
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert where(made) == [("1/leaderboard/B200", "zzz", str(rows.index(BEST_FIRST[-count])))]
    assert made.counts == {"zzz.parquet": (1, count - 1)}
    assert [detail.split(":")[0] for _, detail in made.conflicts] == ["submission 1, leaderboard/B200"]


def test_a_score_is_kept_by_its_merit_whatever_aggregate_file_it_is_in(tmp_path: Path) -> None:
    write(
        tmp_path / "in",
        "a",
        [score_row(1, 0.3), score_row(2, 0.5), score_row(3, runner=None), score_row(3, runner="H100")],
    )
    write(tmp_path / "in", "b", [score_row(1, 0.2), score_row(2, 0.5), score_row(4)])
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert where(made) == [
        ("1/leaderboard/B200", "b", "0"),
        ("2/leaderboard/B200", "a", "1"),
        ("3/leaderboard", "a", "2"),
        ("3/leaderboard/H100", "a", "3"),
        ("4/leaderboard/B200", "b", "2"),
    ]
    assert made.counts == {"a.parquet": (3, 1), "b.parquet": (2, 1)}
    # Only the copies that differ are one; a board may be in several of these files.
    assert [(locator, detail.split(":")[0]) for locator, detail in made.conflicts] == [
        ("a.parquet", "submission 1, leaderboard/B200")
    ]


def test_what_a_submission_scored_is_the_best_of_its_leaderboard_runs(tmp_path: Path) -> None:
    rows = [
        case_row(1, 10, run_score=0.3),
        case_row(1, 11, run_score=0.2),
        case_row(1, 12, run_score=0.1, run_mode="benchmark"),
        case_row(1, 13, run_score=0.1, run_passed=False),
        case_row(2, 14, run_score=-1.0),
    ]
    write(tmp_path / "in", "submissions", rows)
    hacked = [score_row(11, 0.1, status="hacked"), score_row(12, 0.4), score_row(12, 0.2, runner="H100")]
    write(tmp_path / "in", "zzz", hacked)
    made = normalised(tmp_path / "in", tmp_path / "out")
    scores = {row["submission_id"]: row["score_s"] for row in made.tables["submissions"]}
    assert scores == {1: 0.2, 2: None, 11: None, 12: 0.2}


def every_table(made: Normalised) -> dict[str, list[Any]]:
    """All rows, in an order of their own, without the row numbers and file digests that an order of rows decides."""
    left_out = {"item", "content_digest", "detail"}
    return {
        name: sorted(str({column: value for column, value in row.items() if column not in left_out}) for row in rows)
        for name, rows in made.tables.items()
    }


def test_the_order_of_files_and_rows_never_matters(tmp_path: Path) -> None:
    files: dict[str, list[Row]] = {
        "submissions": [
            case_row(i % 5, i % 7, case(str(1000 + i)), run_score=0.1 + i % 3, file_name=f"{i % 2}.py", user_id=None)
            for i in range(20)
        ]
        + [case_row(6, None, case(str(i % 3)), user_id=None) for i in range(5)],
        "successful_submissions": [case_row(i % 6, i, case("7"), case("8", "m"), user_id=None) for i in range(12)],
        "trimul_submissions": [
            score_row(20 + i % 3, 0.1 * (i % 4), mode=["leaderboard", "test"][i % 2], passed=[True, False, None][i % 3],
                      user_name=f"name {i}", file_name=f"{i % 2}.py", submission_time=datetime(2025, 1, 1 + i % 2))
            for i in range(24)
        ],
    }  # fmt: skip
    found = []
    for seed in range(4):
        shuffle = random.Random(seed)
        for name, rows in files.items():
            shuffle.shuffle(rows)
            write(tmp_path / f"in{seed}", name, table(rows))
        made = normalised(tmp_path / f"in{seed}", tmp_path / f"out{seed}", backwards=seed % 2 == 1)
        found.append((every_table(made), made.counts, sorted(set(map(str, made.drift)))))
    assert found[1:] == found[:1] * 3
    assert len(found[0][0]["runs"]) > 20
