"""Every command over a corpus that is full of hostile text and odd rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands import as_json, printed, refused, run


@pytest.fixture(scope="module")
def rows(small_home_folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Runs, problems and boards of the corpus, some of every kind."""

    def of(statement: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(printed(small_home_folder, "sql", statement, "--format", "json"))
        return found

    return {
        "runs": of(
            "select run_id, run_digest from runs "
            "qualify row_number() over (partition by source, status, mode, ineligible_reasons, flags, "
            "regexp_matches(problem || coalesce(runner, '') || labels, '[^ -~]') order by run_id) = 1 "
            "order by hash(run_id) limit 40"
        ),
        "problems": of("select source, problem, problem_digest from problems order by source, problem"),
        "submissions": of("select submission_key from submissions order by submission_key limit 20"),
        "digests": of("select run_digest as digest from runs where run_digest is not null union select workload_digest "
                      "from cases union select problem_digest from problems order by 1"),
    }  # fmt: skip


def test_every_kind_of_run_has_a_page_and_json(small_home_folder: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    assert len(rows["runs"]) > 30
    for row in rows["runs"]:
        assert printed(small_home_folder, "show", row["run_id"])
        assert as_json(small_home_folder, "show", row["run_id"])["run_digest"] == row["run_digest"]
        if row["run_digest"]:
            assert set(json.loads(printed(small_home_folder, "show", row["run_id"], "--manifest"))) == {
                "run", "protocol", "environment",
            }  # fmt: skip
            assert row["run_digest"] in printed(small_home_folder, "cite", row["run_id"])
        else:
            assert refused(small_home_folder, "show", row["run_id"], "--manifest")


def test_problems_have_pages_and_boards(small_home_folder: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    for row in rows["problems"][::20]:
        found = as_json(small_home_folder, "show", row["problem"])["problems"]
        assert [problem["problem_digest"] for problem in found] == [row["problem_digest"]]
        assert printed(small_home_folder, "show", row["problem"])
        assert printed(small_home_folder, "top", row["problem"])


def test_submissions_have_pages(small_home_folder: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    for row in rows["submissions"]:
        assert printed(small_home_folder, "show", row["submission_key"])


def test_first_digits_of_several_digests_list_what_they_may_be(
    small_home_folder: Path, rows: dict[str, list[dict[str, Any]]]
) -> None:
    first = [row["digest"][7:11] for row in rows["digests"]]
    several = next(digits for digits in first if first.count(digits) > 1)
    result = run(small_home_folder, "show", several)
    assert result.exit_code == 1
    assert result.stdout == ""
    *candidates, last = result.stderr.splitlines()
    assert re.fullmatch(rf"Error: {several} may be (more than )?\d+ things; give more of its id or digest", last)
    assert len(candidates) >= first.count(several)
    assert all(f"sha256:{several}" in line for line in candidates)


def test_nothing_of_any_table_harms_a_terminal(small_home_folder: Path) -> None:
    for name in ("rejects", "drift", "authors", "submissions", "problems", "runs"):
        assert printed(small_home_folder, "sql", f"from {name} limit 200")
        assert printed(small_home_folder, "sql", f"from {name} limit 1000", "--format", "json")


def test_state_commands_work_on_it(small_home_folder: Path) -> None:
    assert printed(small_home_folder, "status")
    assert printed(small_home_folder, "snapshots", "list")
    assert printed(small_home_folder, "snapshots", "verify")
