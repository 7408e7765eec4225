"""Every rule of the policy ranking-v1 by its smallest case, and all of them against a plain reading of the rules."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.ranks import POLICIES, Policy, UnknownPolicyError, rank
from tests.tables import Row, warehouse
from warehouse.contracts import TABLES

START = datetime(2025, 3, 1, tzinfo=UTC)


def entry(value: float, author: str | None = "ada", **columns: Any) -> Row:
    """An eligible run; `submission` (a number), `at` (seconds after the start, or None) and `run_id` may be given."""
    submission = columns.pop("submission", None)
    at = columns.pop("at", 0)
    return {
        "value": value,
        "author": author,
        "submission": submission,
        "observed_at": None if at is None else START + timedelta(seconds=at),
        **columns,
    }


def cohort(*entries: Row, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A warehouse of runs; without other word each is a submission of its own, numbered from 1, in cohort `key`."""
    runs, submissions = [], {}
    for position, given_entry in enumerate(entries, start=1):
        row = dict(given_entry)
        value, author, submission = row.pop("value"), row.pop("author"), row.pop("submission") or position
        submissions[submission] = {
            "submission_key": f"s:{submission}",
            "submission_id": submission,
            "author_key": author,
        }
        runs.append(
            {
                "run_id": f"run-{position}",
                "submission_key": f"s:{submission}",
                "comparison_key": "key",
                "primary_value": value,
                "gpu": "H100",
                "primary_metric": "latency",
                "primary_statistic": "mean",
                "primary_unit": "ns",
                "workload_digest": "w",
                "protocol_digest": "p",
                "environment_digest": "e",
                "eligible": True,
                **row,
            }
        )
    return warehouse({"runs": runs, "submissions": list(submissions.values())}, threads=threads)


def ranks(connection: duckdb.DuckDBPyConnection, *columns: str) -> dict[str, Any]:
    """The wanted columns of `ranks` by run id: a value for one column, a tuple for several."""
    rows = rank(connection)["ranks"].to_pylist()
    return {row["run_id"]: row[columns[0]] if len(columns) == 1 else tuple(row[c] for c in columns) for row in rows}


def cohorts(connection: duckdb.DuckDBPyConnection) -> dict[str, Row]:
    return {row["comparison_key"]: row for row in rank(connection)["cohorts"].to_pylist()}


def records(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    return sorted(rank(connection)["records"].to_pylist(), key=lambda row: (row["comparison_key"], row["observed_at"]))


def test_tables_have_the_columns_and_types_of_the_contract() -> None:
    made = rank(cohort(entry(200.0)))
    assert set(made) == {"ranks", "cohorts", "records"}
    for name, table in made.items():
        assert table.schema.equals(TABLES[name].arrow_schema(), check_metadata=True)
        assert table.num_rows == 1


def test_without_eligible_runs_every_table_is_empty() -> None:
    made = rank(cohort(entry(200.0, eligible=False, comparison_key=None)))
    assert {name: table.num_rows for name, table in made.items()} == {"ranks": 0, "cohorts": 0, "records": 0}


def test_the_lowest_value_is_first_and_equal_values_share_a_rank_without_a_gap() -> None:
    connection = cohort(entry(300.0, "a"), entry(100.0, "b"), entry(200.0, "c"), entry(200.0, "d"))
    assert ranks(connection, "rank", "tied") == {
        "run-2": (1, False),
        "run-3": (2, True),
        "run-4": (2, True),
        "run-1": (3, False),
    }


def test_an_ineligible_run_is_not_ranked_and_takes_no_place() -> None:
    connection = cohort(entry(100.0, eligible=False), entry(200.0, "b"))
    assert ranks(connection, "rank", "gap_to_best", "cohort_runs", "cohort_authors") == {"run-2": (1, 1.0, 1, 1)}
    assert cohorts(connection)["key"]["best_value"] == 200.0
    assert [row["run_id"] for row in records(connection)] == ["run-2"]


def test_an_ineligible_run_of_the_cohort_holds_no_best_and_no_record_of_an_equal_value() -> None:
    # An implausible run has a comparison key like any other.
    connection = cohort(entry(100.0, "a", eligible=False), entry(100.0, "b"))
    assert cohorts(connection)["key"]["best_run_id"] == "run-2"
    assert [row["run_id"] for row in records(connection)] == ["run-2"]


def test_runs_are_ranked_inside_their_cohort_alone() -> None:
    connection = cohort(entry(300.0, comparison_key="other"), entry(100.0), entry(200.0))
    assert ranks(connection, "comparison_key", "rank", "cohort_runs", "author_best") == {
        "run-1": ("other", 1, 1, True),
        "run-2": ("key", 1, 2, True),
        "run-3": ("key", 2, 2, False),
    }


def test_an_authors_best_is_the_smallest_value() -> None:
    connection = cohort(entry(200.0, at=0), entry(100.0, at=9))
    assert ranks(connection, "author_best") == {"run-1": False, "run-2": True}


def test_of_equal_values_the_earliest_observation_is_the_authors_best() -> None:
    connection = cohort(entry(100.0, at=9), entry(100.0, at=5))
    assert ranks(connection, "author_best") == {"run-1": False, "run-2": True}
    assert cohorts(connection)["key"]["best_run_id"] == "run-2"


def test_a_run_without_a_time_comes_after_those_with_one() -> None:
    connection = cohort(entry(100.0, at=None), entry(100.0, at=5))
    assert ranks(connection, "author_best") == {"run-1": False, "run-2": True}
    assert cohorts(connection)["key"]["best_run_id"] == "run-2"


def test_of_equal_times_the_smaller_submission_id_as_a_number_is_the_authors_best() -> None:
    connection = cohort(entry(100.0, submission=10), entry(100.0, submission=9))
    assert ranks(connection, "author_best") == {"run-1": False, "run-2": True}
    assert cohorts(connection)["key"]["best_run_id"] == "run-2"
    assert [row["run_id"] for row in records(connection)] == ["run-2"]


def test_of_one_submissions_equal_runs_the_smallest_run_id_is_the_authors_best() -> None:
    connection = cohort(*(entry(100.0, submission=7, run_id=run_id) for run_id in "dbaec"))
    assert ranks(connection, "author_best") == {"a": True} | dict.fromkeys("bcde", False)
    assert cohorts(connection)["key"]["best_run_id"] == "a"
    assert [row["run_id"] for row in records(connection)] == ["a"]


def test_author_rank_is_dense_among_the_authors_bests_and_null_for_other_runs() -> None:
    connection = cohort(
        entry(100.0, "a"), entry(110.0, "a"), entry(120.0, "b"), entry(120.0, "c"), entry(130.0, "d"), entry(130.0, "b")
    )
    assert ranks(connection, "author_rank") == {
        "run-1": 1,
        "run-2": None,
        "run-3": 2,
        "run-4": 2,
        "run-5": 3,
        "run-6": None,
    }


def test_a_run_without_an_author_is_ranked_but_nobodys_best_and_in_no_count_of_authors() -> None:
    connection = cohort(entry(100.0, None), entry(200.0, "a"), entry(300.0, None))
    assert ranks(connection, "rank", "author_best", "author_rank", "cohort_runs", "cohort_authors") == {
        "run-1": (1, False, None, 3, 1),
        "run-2": (2, True, 1, 3, 1),
        "run-3": (3, False, None, 3, 1),
    }
    summary = cohorts(connection)["key"]
    assert (summary["runs"], summary["authors"], summary["best_run_id"]) == (3, 1, "run-1")
    assert [row["run_id"] for row in records(connection)] == ["run-1"]


def test_a_cohort_of_runs_without_authors_has_no_authors() -> None:
    connection = cohort(entry(100.0, None))
    assert ranks(connection, "cohort_authors") == {"run-1": 0}
    assert cohorts(connection)["key"]["authors"] == 0


def test_gap_is_the_value_over_the_best_and_percentile_runs_over_distinct_ranks() -> None:
    connection = cohort(entry(100.0, "a"), entry(100.0, "b"), entry(150.0, "c"), entry(400.0, "d"))
    assert ranks(connection, "gap_to_best", "percentile") == {
        "run-1": (1.0, 0.0),
        "run-2": (1.0, 0.0),
        "run-3": (1.5, 0.5),
        "run-4": (4.0, 1.0),
    }


def test_percentile_is_null_where_all_share_one_rank() -> None:
    assert ranks(cohort(entry(100.0, "a"), entry(100.0, "b")), "percentile", "tied") == {
        "run-1": (None, True),
        "run-2": (None, True),
    }


def test_a_cohort_says_what_its_key_is_made_of_and_how_its_values_lie() -> None:
    common = {"source": "s", "problem_digest": "d", "runner": "MI300", "gpu": "AMD Instinct MI300X"}
    connection = cohort(
        entry(100.0, "a", at=30, problem="zeta", **common),
        entry(200.0, "b", at=None, problem="alpha", **common),
        entry(400.0, "a", at=10, problem="zeta", **common),
    )
    assert cohorts(connection) == {
        "key": {
            "comparison_key": "key",
            "source": "s",
            "problems": ["alpha", "zeta"],
            "problem_digest": "d",
            "workload_digest": "w",
            "protocol_digest": "p",
            "environment_digest": "e",
            "gpu": "AMD Instinct MI300X",
            "runner": "MI300",
            "metric": "latency",
            "statistic": "mean",
            "unit": "ns",
            "runs": 3,
            "authors": 2,
            "best_value": 100.0,
            "median_value": 200.0,
            "p90_value": 360.0,
            "best_run_id": "run-1",
            "first_observed_at": START + timedelta(seconds=10),
            "last_observed_at": START + timedelta(seconds=30),
        }
    }


def test_median_lies_between_the_middle_values_of_an_even_number() -> None:
    summary = cohorts(cohort(entry(100.0), entry(200.0), entry(500.0), entry(700.0)))["key"]
    assert (summary["median_value"], summary["p90_value"]) == (350.0, pytest.approx(640.0, rel=1e-15))


def test_a_cohort_with_several_runner_labels_names_none() -> None:
    assert cohorts(cohort(entry(100.0, runner="MI300"), entry(200.0, runner="MI300X")))["key"]["runner"] is None


def test_each_fall_of_the_best_is_a_record_with_its_predecessor_and_how_long_it_held() -> None:
    connection = cohort(
        entry(300.0, "a", at=0), entry(200.0, "b", at=1.5), entry(250.0, "c", at=2), entry(100.0, "a", at=60)
    )
    columns = ("run_id", "previous_run_id", "value", "previous_value", "held_for_s")
    assert [tuple(row[column] for column in columns) for row in records(connection)] == [
        ("run-1", None, 300.0, None, 1.5),
        ("run-2", "run-1", 200.0, 300.0, 58.5),
        ("run-4", "run-2", 100.0, 200.0, None),
    ]
    assert records(connection)[1]["observed_at"] == START + timedelta(seconds=1.5)


def test_an_equal_value_later_is_no_record() -> None:
    assert [row["run_id"] for row in records(cohort(entry(100.0, "a", at=0), entry(100.0, "b", at=1)))] == ["run-1"]


def test_at_one_instant_only_the_best_run_counts() -> None:
    connection = cohort(entry(300.0, at=0), entry(200.0, at=5), entry(100.0, at=5), entry(100.0, at=5))
    assert [(row["run_id"], row["previous_run_id"]) for row in records(connection)] == [
        ("run-1", None),
        ("run-3", "run-1"),
    ]


def test_a_run_without_a_time_sets_no_record() -> None:
    connection = cohort(entry(100.0, at=None), entry(200.0, at=0), entry(50.0, at=None))
    assert [(row["run_id"], row["previous_value"]) for row in records(connection)] == [("run-2", None)]
    assert cohorts(connection)["key"]["best_run_id"] == "run-3"


def test_a_second_policy_stands_beside_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(__file__).parent.parent / "sql" / POLICIES["ranking-v1"].folder
    for name in ("ranks", "cohorts", "records"):
        text = (folder / f"{name}.sql").read_text(encoding="utf-8")
        (tmp_path / f"{name}.sql").write_text(text.replace("dense_rank()", "rank()"), encoding="utf-8")
    monkeypatch.setitem(POLICIES, "ranking-gaps", Policy("ranking-gaps", str(tmp_path)))
    connection = cohort(entry(100.0, "a"), entry(100.0, "b"), entry(200.0, "c"))
    rows = [*rank(connection)["ranks"].to_pylist(), *rank(connection, "ranking-gaps")["ranks"].to_pylist()]
    assert {(row["policy"], row["run_id"]): row["rank"] for row in rows} == {
        ("ranking-v1", "run-1"): 1,
        ("ranking-v1", "run-2"): 1,
        ("ranking-v1", "run-3"): 2,
        ("ranking-gaps", "run-1"): 1,
        ("ranking-gaps", "run-2"): 1,
        ("ranking-gaps", "run-3"): 3,
    }


def test_an_unknown_policy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownPolicyError, match="no ranking policy 'ranking-v0'; there are: ranking-v1"):
        rank(cohort(entry(100.0)), "ranking-v0")


# The rules once more, run by run, as slowly as one likes.


def order(row: Row) -> tuple[Any, ...]:
    at = row["observed_at"]
    return (row["value"], at is None, at or START, row["submission"], row["run_id"])


def interpolated(values: list[float], share: float) -> float:
    place = share * (len(values) - 1)
    low = math.floor(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def expected_ranks(rows: list[Row]) -> dict[str, Row]:
    values = sorted({row["value"] for row in rows})
    authors = {row["author"] for row in rows if row["author"] is not None}
    bests = {author: min((row for row in rows if row["author"] == author), key=order) for author in authors}
    best_values = sorted({row["value"] for row in bests.values()})
    made = {}
    for row in rows:
        is_best = row["author"] is not None and bests[row["author"]]["run_id"] == row["run_id"]
        place = values.index(row["value"])
        made[row["run_id"]] = {
            "policy": "ranking-v1",
            "run_id": row["run_id"],
            "comparison_key": row["comparison_key"],
            "rank": place + 1,
            "author_rank": best_values.index(row["value"]) + 1 if is_best else None,
            "author_best": is_best,
            "tied": sum(other["value"] == row["value"] for other in rows) > 1,
            "gap_to_best": row["value"] / values[0],
            "percentile": place / (len(values) - 1) if len(values) > 1 else None,
            "cohort_runs": len(rows),
            "cohort_authors": len(authors),
        }
    return made


def expected_records(rows: list[Row]) -> list[tuple[Any, ...]]:
    made: list[Row] = []
    timed = [row for row in rows if row["observed_at"] is not None]
    for row in sorted(timed, key=lambda row: (row["observed_at"], *order(row))):
        if not made or row["value"] < made[-1]["value"]:
            made.append(row)
    links = zip([None, *made], made, [*made[1:], None], strict=False)
    return [
        (
            row["run_id"],
            before and before["run_id"],
            row["value"],
            before and before["value"],
            after and (after["observed_at"] - row["observed_at"]) / timedelta(seconds=1),
        )
        for before, row, after in links
        if row is not None
    ]


entries = st.lists(
    st.builds(
        entry,
        st.sampled_from([100.0, 101.0, 250.5, 1e-5]),
        st.sampled_from(["a", "b", "c", None]),
        at=st.sampled_from([None, 0, 1, 2.000001]),
        comparison_key=st.sampled_from(["key", "other", "third"]),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(entries, st.randoms(use_true_random=False))
def test_generated_cohorts_come_out_as_the_rules_say(rows: list[Row], random: Any) -> None:
    numbers = random.sample(range(1, 100), len(rows))
    rows = [
        {**row, "submission": n, "run_id": f"run-{i}"} for i, (row, n) in enumerate(zip(rows, numbers, strict=True))
    ]
    groups = defaultdict(list)
    for row in rows:
        groups[row["comparison_key"]].append(row)
    made = rank(cohort(*rows))
    by_run = {row["run_id"]: row for row in made["ranks"].to_pylist()}
    by_key = {row["comparison_key"]: row for row in made["cohorts"].to_pylist()}
    assert len(by_run) == made["ranks"].num_rows == len(rows)
    assert set(by_key) == set(groups)
    for key, group in groups.items():
        for run_id, wanted in expected_ranks(group).items():
            assert by_run[run_id] == wanted
        values = sorted(row["value"] for row in group)
        summary = by_key[key]
        assert summary["best_run_id"] == min(group, key=order)["run_id"]
        assert (summary["runs"], summary["best_value"]) == (len(group), values[0])
        assert summary["authors"] == len({row["author"] for row in group} - {None})
        assert summary["median_value"] == pytest.approx(interpolated(values, 0.5), rel=1e-12)
        assert summary["p90_value"] == pytest.approx(interpolated(values, 0.9), rel=1e-12)
        falls = [row for row in made["records"].to_pylist() if row["comparison_key"] == key]
        falls.sort(key=lambda row: row["observed_at"])
        columns = ("run_id", "previous_run_id", "value", "previous_value", "held_for_s")
        assert [tuple(row[column] for column in columns) for row in falls] == expected_records(group)


def ranked_crowd(threads: int, order_of_rows: str) -> dict[str, list[Row]]:
    """The tables over 150,000 runs: enough for several threads, with figures that do not add up exactly."""
    connection = cohort(entry(1.0), threads=threads)
    connection.execute(
        f"""
        create temp table crowd as
        select i, hash(i, 1) % 97 as author, hash(i, 2) % 20 as key, 1e-5 * (1 + hash(i, 3) % 5000 / 7.0) as value
        from range(150000) as numbers(i)
        order by {order_of_rows};

        insert into submissions
        select template.* replace ('s:' || i as submission_key, i as submission_id, 'author-' || author as author_key)
        from submissions as template, crowd;

        insert into runs
        select
            template.* replace (
                'run-' || i as run_id,
                's:' || i as submission_key,
                'key-' || key as comparison_key,
                value as primary_value,
                timestamptz '2025-01-01 00:00:00Z' + to_seconds((hash(i, 4) % 100000)::bigint) as observed_at
            )
        from runs as template, crowd;

        delete from runs where run_id = 'run-1' and comparison_key = 'key';
        delete from submissions where author_key = 'ada';
        """
    )
    assert connection.execute("select count(*) from runs").fetchall() == [(150_000,)]
    return {
        name: made.sort_by([(column, "ascending") for column in TABLES[name].key]).to_pylist()
        for name, made in rank(connection).items()
    }


def test_tables_do_not_depend_on_thread_count_or_row_order() -> None:
    alone = ranked_crowd(1, "i")
    assert len(alone["cohorts"]) == 20
    for name, rows in ranked_crowd(4, "hash(i, 5)").items():
        assert rows == alone[name]
