"""What moved between two snapshots: each kind, and which of them holds first."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from assets.ranks import UnknownPolicyError, movements, rank
from tests.tables import Row, warehouse
from warehouse.contracts import TABLES


def run(value: float | None, **columns: Any) -> Row:
    """An eligible run in cohort `key`."""
    return {
        "comparison_key": "key",
        "primary_value": value,
        "eligible": True,
        "gpu": "H100",
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
        "workload_digest": "w",
        "protocol_digest": "p",
        "environment_digest": "e",
        **columns,
    }


def ineligible(value: float | None = None, **columns: Any) -> Row:
    """A run that is no longer, or not yet, ranked."""
    return run(value, eligible=False, comparison_key=None, ineligible_reasons=["NOT_PASSED"], **columns)


def snapshot(rows: dict[str, Row]) -> duckdb.DuckDBPyConnection:
    """Runs by id, with their ranks and cohorts."""
    runs = [{"run_id": run_id, "submission_key": f"s:{run_id}", **row} for run_id, row in rows.items()]
    submissions = [{"submission_key": f"s:{run_id}", "author_key": f"author of {run_id}"} for run_id in rows]
    connection = warehouse({"runs": runs, "submissions": submissions, "ranks": [], "cohorts": []})
    for name, table in rank(connection).items():
        connection.register(f"{name}_made", table)
    connection.execute("insert into ranks from ranks_made; insert into cohorts from cohorts_made")
    return connection


def between(before: dict[str, Row], after: dict[str, Row]) -> list[Row]:
    connection = snapshot(after)
    earlier = snapshot(before)
    for name in ("runs", "ranks"):
        connection.register(f"previous_{name}", earlier.sql(f"from {name}").to_arrow_table())
    made = movements(connection, "2025-06-01T00-00-00Z-0123abcd").read_all()
    assert made.schema.equals(TABLES["movements"].arrow_schema(), check_metadata=True)
    return sorted(made.to_pylist(), key=lambda row: (row["comparison_key"], row["run_id"]))


def kinds(before: dict[str, Row], after: dict[str, Row]) -> dict[str, str]:
    return {row["run_id"]: row["kind"] for row in between(before, after)}


def test_a_run_whose_rank_and_value_are_as_before_has_not_moved() -> None:
    assert between({"a": run(100.0), "b": run(200.0)}, {"a": run(100.0), "b": run(200.0)}) == []


def test_a_movement_tells_rank_and_value_before_and_after() -> None:
    assert between({"a": run(100.0), "b": run(300.0)}, {"a": run(100.0), "b": run(300.0), "c": run(200.0)}) == [
        {
            "comparison_key": "key",
            "run_id": "b",
            "kind": "fell",
            "rank_before": 2,
            "rank_after": 3,
            "value_before": 300.0,
            "value_after": 300.0,
            "previous_snapshot_id": "2025-06-01T00-00-00Z-0123abcd",
        },
        {
            "comparison_key": "key",
            "run_id": "c",
            "kind": "entered",
            "rank_before": None,
            "rank_after": 2,
            "value_before": None,
            "value_after": 200.0,
            "previous_snapshot_id": "2025-06-01T00-00-00Z-0123abcd",
        },
    ]


def test_a_run_that_is_gone_left_and_those_behind_it_rose() -> None:
    rows = between({"a": run(100.0), "b": run(200.0)}, {"b": run(200.0)})
    assert [(row["run_id"], row["kind"], row["rank_after"], row["value_after"]) for row in rows] == [
        ("a", "left", None, None),
        ("b", "rose", 1, 200.0),
    ]


def test_a_run_that_is_still_there_but_no_longer_eligible_was_withdrawn() -> None:
    (row,) = between({"a": run(100.0)}, {"a": ineligible(100.0)})
    assert (row["run_id"], row["kind"], row["rank_before"], row["value_before"]) == ("a", "withdrawn", 1, 100.0)
    assert (row["rank_after"], row["value_after"]) == (None, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gpumode-kernelbot:submission/7/leaderboard/B200", "gpumode-kernelbot:submission/7/leaderboard"),
        ("gpumode-kernelbot:submission/7/leaderboard/a/b", "gpumode-kernelbot:submission/7/leaderboard"),
        ("gpumode-kernelbot:submission/7/run/9/benchmark/0", "gpumode-kernelbot:submission/7/run/9"),
    ],
)
def test_a_row_that_lost_its_runner_or_cases_with_its_score_was_withdrawn(before: str, after: str) -> None:
    assert kinds({before: run(100.0)}, {after: ineligible()}) == {before: "withdrawn"}


def test_another_row_of_the_submission_does_not_make_a_run_withdrawn() -> None:
    before = "gpumode-kernelbot:submission/7/leaderboard/B200"
    after = {
        "gpumode-kernelbot:submission/7/leaderboard/H100": ineligible(),
        "gpumode-kernelbot:submission/70/leaderboard": ineligible(),
    }
    assert kinds({before: run(100.0)}, after) == {before: "left"}


def test_another_value_is_a_change_even_where_it_takes_the_best_or_keeps_the_rank() -> None:
    before = {"a": run(100.0), "b": run(200.0), "c": run(300.0)}
    assert kinds(before, {"a": run(100.0), "b": run(50.0), "c": run(290.0)}) == {
        "a": "fell",
        "b": "changed",
        "c": "changed",
    }


def test_a_new_run_that_beats_the_best_is_a_record_and_the_others_that_beat_it_entered() -> None:
    before = {"a": run(100.0)}
    after = {"a": run(100.0), "b": run(90.0), "c": run(80.0), "d": run(80.0)}
    assert kinds(before, after) == {"a": "fell", "b": "entered", "c": "record", "d": "entered"}


def test_a_new_run_that_equals_the_best_entered() -> None:
    assert kinds({"b": run(100.0)}, {"a": run(100.0), "b": run(100.0)}) == {"a": "entered"}


def test_where_the_best_was_withdrawn_its_successor_is_no_record() -> None:
    before = {"a": run(100.0), "b": run(300.0)}
    after = {"a": ineligible(), "b": run(300.0), "c": run(200.0)}
    assert kinds(before, after) == {"a": "withdrawn", "c": "entered"}


def test_in_a_new_cohort_no_record_fell() -> None:
    assert kinds({}, {"a": run(100.0), "b": run(200.0)}) == {"a": "entered", "b": "entered"}


def test_a_run_that_became_eligible_entered_or_set_a_record() -> None:
    before = {"a": run(100.0), "b": ineligible(), "c": ineligible(150.0)}
    after = {"a": run(100.0), "b": run(90.0), "c": run(150.0)}
    assert kinds(before, after) == {"a": "fell", "b": "record", "c": "entered"}


def test_a_run_that_went_to_another_cohort_left_the_one_and_entered_the_other() -> None:
    rows = between({"a": run(100.0)}, {"a": run(100.0, comparison_key="other")})
    assert [(row["comparison_key"], row["kind"]) for row in rows] == [("key", "left"), ("other", "entered")]


def test_ranks_change_inside_a_cohort_alone() -> None:
    before = {"a": run(100.0), "b": run(200.0, comparison_key="other")}
    after = {"a": run(100.0), "b": run(200.0, comparison_key="other"), "c": run(50.0, comparison_key="other")}
    assert kinds(before, after) == {"b": "fell", "c": "record"}


def test_ranks_of_another_policy_do_not_count() -> None:
    connection = snapshot({"a": run(100.0), "b": run(200.0)})
    connection.execute(
        """
        create table previous_runs as from runs;
        create table previous_ranks as from ranks;
        insert into previous_ranks select * replace ('other' as policy, 7 as rank) from ranks;
        """
    )
    assert movements(connection, "before").read_all().num_rows == 0
    with pytest.raises(UnknownPolicyError, match="'other'"):
        movements(connection, "before", "other")
