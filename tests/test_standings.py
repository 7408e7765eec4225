"""Places as KernelBot and SOL-ExecBench show them."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from assets.ranks import standings
from tests.tables import Row, warehouse
from warehouse.contracts import TABLES


def board(*entries: Row) -> duckdb.DuckDBPyConnection:
    """A warehouse of results, each of a submission of its own, numbered from 1, unless `submission` says which."""
    results, submissions = [], {}
    for position, entry in enumerate(entries, start=1):
        row = dict(entry)
        source, number = row["source"], row.pop("submission", position)
        key = f"{source}:{number}"
        submissions[key] = {
            "submission_key": key,
            "source": source,
            "submission_id": number,
            "author_key": row.pop("author"),
            "submitted_at": row.pop("submitted_at", None),
        }
        results.append(
            {
                "run_id": f"run-{position}",
                "submission_key": key,
                "passed": True,
                "leaderboard_mode": True,
                "native_metrics": "{}",
                **row,
            }
        )
    return warehouse({"results": results, "submissions": list(submissions.values())})


def kernelbot(author: str | None, score_s: float | None, **columns: Any) -> Row:
    """A KernelBot result that counts on board `b` and runner `H100`."""
    source = "gpumode-kernelbot"
    return {"source": source, "problem": "b", "runner": "H100", "author": author, "score_s": score_s, **columns}


def sol(author: str | None, sol_score: float | None, **columns: Any) -> Row:
    """A SOL-ExecBench result that counts for kernel `k`, GPU `B200`, stack `v1.1`."""
    latency_ms = columns.pop("latency_ms", 1.5)
    metrics = {"latency_ms": latency_ms} | ({} if sol_score is None else {"sol_score": sol_score})
    return {
        "source": "sol-execbench",
        "problem": "k",
        "runner": "B200",
        "version_label": "v1.1",
        "author": author,
        "native_metrics": json.dumps(metrics),
        **columns,
    }


def places(connection: duckdb.DuckDBPyConnection, *columns: str) -> list[tuple[Any, ...]]:
    rows = standings(connection).read_all().to_pylist()
    return sorted(tuple(row[column] for column in columns) for row in rows)


def test_the_table_is_that_of_the_contract() -> None:
    made = standings(board(kernelbot("a", 2e-5), sol("u", 0.5))).read_all()
    assert made.schema.equals(TABLES["standings"].arrow_schema(), check_metadata=True)
    assert sorted(made.to_pylist(), key=lambda row: row["source"]) == [
        {
            "source": "gpumode-kernelbot",
            "problem": "b",
            "runner": "H100",
            "stack_version": "",
            "author_key": "a",
            "position": 1,
            "submission_key": "gpumode-kernelbot:1",
            "score_s": 2e-5,
            "sol_score": None,
            "latency_ms": None,
            "submissions": 1,
            "rule": "best-score-v1",
        },
        {
            "source": "sol-execbench",
            "problem": "k",
            "runner": "B200",
            "stack_version": "v1.1",
            "author_key": "u",
            "position": 1,
            "submission_key": "sol-execbench:2",
            "score_s": None,
            "sol_score": 0.5,
            "latency_ms": 1.5,
            "submissions": 1,
            "rule": "best-sol-score-v1",
        },
    ]


def test_kernelbot_ranks_authors_by_their_best_score_and_skips_a_place_after_a_tie() -> None:
    connection = board(
        kernelbot("a", 3.0), kernelbot("a", 2.0), kernelbot("b", 2.0), kernelbot("c", 1.0), kernelbot("d", 4.0)
    )
    assert places(connection, "position", "author_key", "score_s", "submission_key", "submissions") == [
        (1, "c", 1.0, "gpumode-kernelbot:4", 1),
        (2, "a", 2.0, "gpumode-kernelbot:2", 2),
        (2, "b", 2.0, "gpumode-kernelbot:3", 1),
        (4, "d", 4.0, "gpumode-kernelbot:5", 1),
    ]


def test_kernelbot_boards_and_runners_are_apart() -> None:
    connection = board(kernelbot("a", 3.0), kernelbot("b", 2.0, runner="A100"), kernelbot("b", 1.0, problem="c"))
    assert places(connection, "problem", "runner", "author_key", "position") == [
        ("b", "A100", "b", 1),
        ("b", "H100", "a", 1),
        ("c", "H100", "b", 1),
    ]


def test_kernelbot_counts_neither_failed_nor_hacked_nor_other_modes_nor_what_lacks_score_runner_or_author() -> None:
    connection = board(
        kernelbot("a", 1.0, passed=False),
        kernelbot("b", 1.0, passed=False, revoked=True),
        kernelbot("c", 1.0, leaderboard_mode=False),
        kernelbot("d", None),
        kernelbot("e", 1.0, runner=None),
        kernelbot(None, 1.0),
        kernelbot("f", 2.0),
    )
    assert places(connection, "position", "author_key") == [(1, "f")]


def test_a_score_that_no_policy_believes_still_has_its_place() -> None:
    connection = board(kernelbot("a", 4.6e-25, below_floor=True), kernelbot("b", 2e-5))
    assert places(connection, "position", "author_key") == [(1, "a"), (2, "b")]


def test_the_cases_of_a_run_and_the_runs_of_a_submission_are_one_submission_by_its_best_score() -> None:
    connection = board(
        kernelbot("a", 3.0, submission=7, case_index=0),
        kernelbot("a", 3.0, submission=7, case_index=1),
        kernelbot("a", 2.0, submission=7, case_index=0),
        kernelbot("a", 5.0, submission=8, case_index=0),
    )
    assert places(connection, "score_s", "submission_key", "submissions") == [(2.0, "gpumode-kernelbot:7", 2)]


def test_of_an_authors_equal_scores_the_earliest_submission_holds_the_place() -> None:
    connection = board(
        kernelbot("a", 2.0),
        kernelbot("a", 2.0, submission=30, submitted_at="2025-05-01"),
        kernelbot("a", 2.0, submission=20, submitted_at="2025-05-02"),
        kernelbot("b", 2.0, submission=10),
        kernelbot("b", 2.0, submission=9),
    )
    assert places(connection, "author_key", "submission_key", "submissions") == [
        ("a", "gpumode-kernelbot:30", 3),
        ("b", "gpumode-kernelbot:9", 2),
    ]


def test_sol_ranks_users_by_their_best_sol_score_highest_first_whatever_the_latency() -> None:
    connection = board(
        sol("a", 0.5, latency_ms=1.0),
        sol("b", 0.75, latency_ms=9.0),
        sol("c", 0.75, latency_ms=2.0),
        sol("d", 0.25),
        sol("a", 0.125),
    )
    assert places(connection, "position", "author_key", "sol_score", "latency_ms", "submissions") == [
        (1, "b", 0.75, 9.0, 1),
        (1, "c", 0.75, 2.0, 1),
        (3, "a", 0.5, 1.0, 2),
        (4, "d", 0.25, 1.5, 1),
    ]


def test_sol_kernels_gpus_and_stacks_are_apart_and_a_missing_stack_is_unknown() -> None:
    connection = board(
        sol("a", 0.5),
        sol("b", 0.6, version_label="v1.0"),
        sol("c", 0.7, runner="H100"),
        sol("d", 0.8, version_label=None),
    )
    assert places(connection, "runner", "stack_version", "author_key", "position") == [
        ("B200", "unknown", "d", 1),
        ("B200", "v1.0", "b", 1),
        ("B200", "v1.1", "a", 1),
        ("H100", "v1.1", "c", 1),
    ]


def test_of_a_users_equal_sol_scores_the_earliest_submission_holds_the_place() -> None:
    connection = board(
        sol("a", 0.5, submission=30, submitted_at="2026-05-02T00:00:01", latency_ms=1.0),
        sol("a", 0.5, submission=40, submitted_at="2026-05-02T00:00:00", latency_ms=2.0),
        sol("a", 0.5, submission=39, submitted_at="2026-05-02T00:00:01", latency_ms=0.5),
        sol("b", 0.5, submission=12, submitted_at="2026-05-02"),
        sol("b", 0.5, submission=11, submitted_at="2026-05-02"),
    )
    assert places(connection, "author_key", "submission_key", "latency_ms") == [
        ("a", "sol-execbench:40", 2.0),
        ("b", "sol-execbench:11", 1.5),
    ]


def test_sol_counts_neither_incorrect_nor_private_nor_what_lacks_score_gpu_or_user() -> None:
    connection = board(
        sol("a", 0.9, passed=False),
        sol("b", 0.9, passed=False, revoked=True),
        sol("c", 0.9, leaderboard_mode=False),
        sol("d", None),
        sol("e", 0.9, runner=None),
        sol(None, 0.9),
        sol("f", 0.0),
    )
    assert places(connection, "position", "author_key", "sol_score") == [(1, "f", 0.0)]
