"""The views of a snapshot, over published tables alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.tables import Row, fill, warehouse
from warehouse.contracts import TABLES
from warehouse.statements import names, statement

AT = datetime(2025, 6, 1, 9, 11, 14, 635000, tzinfo=UTC)


def published(**rows: list[Row]) -> duckdb.DuckDBPyConnection:
    """All published tables, with a snapshot under ranking-v1 unless another is given, and the views over them."""
    snapshot: list[Row] = [{"snapshot_id": "now", "ranking_policy": "ranking-v1"}]
    connection = warehouse({name: rows.get(name, snapshot if name == "snapshot" else []) for name in TABLES})
    for name in names("views"):
        connection.execute(statement(name))
    return connection


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    rows: list[Row] = connection.sql(query).to_arrow_table().to_pylist()
    return rows


def ranked(run_id: str, rank: int, policy: str = "ranking-v1", **columns: Any) -> Row:
    return {"policy": policy, "run_id": run_id, "comparison_key": "key", "rank": rank, "gap_to_best": 1.0, **columns}


def test_every_view_file_makes_the_view_it_is_named_after() -> None:
    connection = published()
    views = connection.sql("select view_name from duckdb_views() where not internal").fetchall()
    assert {f"views/{name}" for (name,) in views} == set(names("views"))
    for (name,) in views:
        assert connection.sql(f"from {name}").fetchall() == []


def test_leaderboard_shows_the_ranked_runs_in_order_of_boards_cases_and_ranks() -> None:
    common = {"source": "s", "gpu": "H100", "runner": "H100", "primary_unit": "ns", "comparison_key": "key"}
    connection = published(
        runs=[
            {
                "run_id": "second",
                "submission_key": "s:1",
                "problem": "b",
                "case_index": 0,
                "primary_value": 250.0,
                **common,
            },
            {
                "run_id": "first",
                "submission_key": "s:2",
                "problem": "b",
                "case_index": 0,
                "primary_value": 200.0,
                "observed_at": AT,
                **common,
            },
            {
                "run_id": "later",
                "submission_key": "s:2",
                "problem": "b",
                "case_index": 1,
                "primary_value": 100.0,
                **common,
            },
            {"run_id": "earlier", "submission_key": "s:3", "problem": "a", "primary_value": 900.0, **common},
            {"run_id": "not ranked", "submission_key": "s:3", "problem": "a", **common},
        ],
        submissions=[
            {"submission_key": "s:1", "author_key": None},
            {"submission_key": "s:2", "author_key": "s:user/2"},
            {"submission_key": "s:3", "author_key": "s:user/2"},
        ],
        authors=[{"author_key": "s:user/2", "project_name": "Ada"}],
        ranks=[
            ranked("second", 2, gap_to_best=1.25, tied=True),
            ranked("first", 1, author_rank=1),
            ranked("later", 1),
            ranked("earlier", 1),
            ranked("first", 9, policy="ranking-v2"),
        ],
    )
    assert [row["run_id"] for row in rows_of(connection, "from leaderboard")] == ["earlier", "first", "second", "later"]
    board = {"problem": "b", "case": 0, "gpu": "H100", "runner": "H100", "unit": "ns"}
    first = {
        "rank": 1,
        "author_rank": 1,
        "author": "Ada",
        "value": 200.0,
        "gap": 1.0,
        "observed": AT,
        "run_id": "first",
    }
    second = {"rank": 2, "author_rank": None, "author": None, "value": 250.0, "gap": 1.25, "observed": None}
    found = rows_of(connection, "from leaderboard where problem = 'b' and \"case\" = 0")
    assert found == [{**board, **first}, {**board, **second, "run_id": "second"}]
    assert list(found[0]) == [
        "rank", "author_rank", "problem", "case", "gpu", "runner", "author", "value", "unit", "gap", "observed",
        "run_id",
    ]  # fmt: skip


def test_leaderboard_follows_the_policy_of_the_snapshot() -> None:
    connection = published(
        snapshot=[{"snapshot_id": "now", "ranking_policy": "ranking-v2"}],
        runs=[{"run_id": "a", "comparison_key": "key", "primary_value": 100.0}],
        ranks=[ranked("a", 1), ranked("a", 9, policy="ranking-v2")],
    )
    assert [row["rank"] for row in rows_of(connection, "from leaderboard")] == [9]
    assert [row["rank"] for row in rows_of(connection, "from run_record")] == [9]


def test_progress_tells_each_record_with_names_and_dates() -> None:
    connection = published(
        runs=[
            {
                "run_id": "slow",
                "submission_key": "s:1",
                "source": "s",
                "problem": "b",
                "gpu": "H100",
                "primary_unit": "ns",
            },
            {
                "run_id": "fast",
                "submission_key": "s:2",
                "source": "s",
                "problem": "b",
                "gpu": "H100",
                "primary_unit": "ns",
            },
        ],
        submissions=[{"submission_key": f"s:{n}", "author_key": f"s:user/{n}"} for n in (1, 2)],
        authors=[{"author_key": f"s:user/{n}", "project_name": name} for n, name in ((1, "Ada"), (2, "Grace"))],
        records=[
            {
                "comparison_key": "key",
                "run_id": "fast",
                "previous_run_id": "slow",
                "value": 100.0,
                "previous_value": 250.0,
                "observed_at": "2025-06-02",
            },
            {
                "comparison_key": "key",
                "run_id": "slow",
                "value": 250.0,
                "observed_at": "2025-06-01",
                "held_for_s": 86400.0,
            },
        ],
    )
    columns = "problem, gpu, value, unit, author, previous_value, previous_author, speedup, held_for_s"
    assert connection.sql(f"select {columns} from progress").fetchall() == [
        ("b", "H100", 250.0, "ns", "Ada", None, None, None, 86400.0),
        ("b", "H100", 100.0, "ns", "Grace", 250.0, "Ada", 2.5, None),
    ]


def test_ineligible_counts_each_reason_per_board() -> None:
    reasons = [["NOT_PASSED"], ["NOT_PASSED", "NO_VALUE"], ["REVOKED"], []]
    connection = published(
        runs=[
            {"run_id": f"{problem}{n}", "source": "s", "problem": problem, "ineligible_reasons": given}
            for problem in ("a", "b")
            for n, given in enumerate(reasons if problem == "a" else reasons[2:])
        ]
    )
    assert connection.sql("from ineligible").fetchall() == [
        ("s", "a", "NOT_PASSED", 2),
        ("s", "a", "NO_VALUE", 1),
        ("s", "a", "REVOKED", 1),
        ("s", "b", "REVOKED", 1),
    ]


def record_page() -> duckdb.DuckDBPyConnection:
    """One run with all that hangs on it, and a run of which the source says next to nothing."""
    full = {
        "run_id": "full",
        "source": "s",
        "submission_key": "s:29858",
        "problem": "b",
        "workload_digest": "w",
        "problem_digest": "d",
        "implementation_digest": "i",
        "protocol_digest": "p",
        "environment_digest": "e",
        "comparison_key": "key",
        "primary_value": 4175913.0,
        "sample_count": 20,
        "native_metrics": '{"mean_ns":4175913.45}',
        "eligible": True,
        "content_digest": "c",
        "locator": "f.parquet",
        "observed_at": AT,
    }
    return published(
        runs=[full, {"run_id": "bare", "source": "s", "submission_key": "s:1", "problem": "b", "problem_digest": "d"}],
        submissions=[
            {
                "submission_key": "s:29858",
                "submission_id": 29858,
                "author_key": "u",
                "revision": "submission-29858",
                "source_digest": "t",
                "source_bytes": 12,
            },
        ],
        authors=[{"author_key": "u", "project_slug": "kernelbot-user-7", "project_name": "Ada"}],
        artifacts=[{"source_digest": "t", "lines": 3, "language": "python", "text_stored": True}],
        implementations=[
            {
                "implementation_digest": "i",
                "language": "python",
                "architectures": ["gfx942"],
                "products": ["AMD Instinct MI300X"],
                "dtypes": ["bf16", "fp32"],
            }
        ],
        problems=[
            {"source": "s", "problem": "b", "title": "Mixture of experts", "slug": "moe", "family": "moe"},
            {"source": "other", "problem": "b", "title": "Another source's"},
        ],
        cases=[
            {
                "source": "s",
                "problem": "b",
                "workload_digest": "w",
                "occurrence": 0,
                "axes": '{"m":1}',
                "tensors": "{}",
                "correctness": '{"comparator":"kernelbot_eval"}',
                "baseline_latency_ms": 1.0,
            },
            {"source": "s", "problem": "b", "workload_digest": "w", "occurrence": 1, "baseline_latency_ms": 2.0},
            {"source": "s", "problem": "twin", "workload_digest": "w", "baseline_latency_ms": 3.0},
        ],
        protocols=[{"protocol_digest": "p", "harness": "eval.py", "timer": "wall_clock"}],
        environments=[{"environment_digest": "e", "vendor": "amd", "product": "AMD Instinct MI300X"}],
        ranks=[
            ranked("full", 3, author_best=True, cohort_runs=40, cohort_authors=9),
            ranked("full", 1, policy="other"),
        ],
        cohorts=[{"comparison_key": "key", "best_value": 4e6, "best_run_id": "best"}],
        sources=[{"source": "s", "name": "KernelBot", "url": "https://example.org", "attribution": "GPU MODE"}],
        source_files=[
            {"content_digest": "c", "locator": "f.parquet", "revision": "abc", "fetched_at": "2025-07-01"},
            {"content_digest": "c", "locator": "copy.parquet", "revision": "def"},
        ],
    )


def test_run_record_is_one_row_with_all_that_hangs_on_a_run() -> None:
    (row,) = rows_of(record_page(), "from run_record where run_id = 'full'")
    shown = {
        "primary_value": 4175913.0,
        "sample_count": 20,
        "native_metrics": '{"mean_ns":4175913.45}',
        "observed_at": AT,
        "project_slug": "kernelbot-user-7",
        "project_name": "Ada",
        "submission_id": 29858,
        "revision": "submission-29858",
        "source_digest": "t",
        "source_bytes": 12,
        "source_lines": 3,
        "source_language": "python",
        "source_text_stored": True,
        "language": "python",
        "architectures": ["gfx942"],
        "products": ["AMD Instinct MI300X"],
        "dtypes": ["bf16", "fp32"],
        "problem_title": "Mixture of experts",
        "problem_slug": "moe",
        "problem_family": "moe",
        "axes": '{"m":1}',
        "tensors": "{}",
        "correctness": '{"comparator":"kernelbot_eval"}',
        "baseline_latency_ms": 1.0,
        "protocol_harness": "eval.py",
        "protocol_timer": "wall_clock",
        "environment_vendor": "amd",
        "environment_product": "AMD Instinct MI300X",
        "rank": 3,
        "author_best": True,
        "cohort_runs": 40,
        "cohort_authors": 9,
        "cohort_best_run_id": "best",
        "source_name": "KernelBot",
        "source_url": "https://example.org",
        "source_attribution": "GPU MODE",
        "source_revision": "abc",
        "imported_at": datetime(2025, 7, 1, tzinfo=UTC),
        "snapshot_id": "now",
        "ranking_policy": "ranking-v1",
    }
    assert {column: row[column] for column in shown} == shown


def test_run_record_leaves_null_what_the_source_does_not_say() -> None:
    (row,) = rows_of(record_page(), "from run_record where run_id = 'bare'")
    absent = ["rank", "project_name", "axes", "protocol_harness", "environment_product", "language", "imported_at"]
    assert [row[column] for column in absent] == [None] * len(absent)
    assert (row["problem_title"], row["eligible"], row["source_text_stored"]) == ("Mixture of experts", False, False)


@pytest.mark.parametrize("view", sorted(name.split("/")[1] for name in names("views")))
def test_views_are_kept_in_a_file_that_older_clients_can_open(view: str, tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute(f"attach '{tmp_path / 'snapshot.duckdb'}' as snapshot_file (storage_version 'v1.0.0')")
    connection.execute("use snapshot_file")
    for table in TABLES.values():
        connection.execute(table.ddl())
    fill(connection, "snapshot", [{"snapshot_id": "now"}])
    connection.execute(statement(f"views/{view}"))
    connection.close()
    with duckdb.connect(str(tmp_path / "snapshot.duckdb"), read_only=True) as reader:
        assert reader.sql(f"from {view}").fetchall() == []
