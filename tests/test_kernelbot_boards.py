"""Boards, submissions, authors and implementations of KernelBot, each with what its files and the facts say of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from assets.kernelbot.facts import load_boards
from tests import oracle
from tests.kernelbot_folder import by_submission, case, case_row, normalised, score_row, write

TRIMUL = load_boards()["trimul"]
DIGEST = "sha256:" + "ab" * 32


def test_boards_go_by_the_list_then_by_what_is_known_then_by_their_number(tmp_path: Path) -> None:
    listed = [
        {"id": 398, "name": "amd-identity-renamed", "deadline": datetime(2025, 7, 1)},
        {"id": 1000, "name": "no-rows-yet", "deadline": None},
    ]
    write(tmp_path / "in", "leaderboards", listed)
    numbers = [399, 398, 563, 565, 12345, None]
    write(tmp_path / "in", "submissions", [case_row(i, i, leaderboard_id=board) for i, board in enumerate(numbers, 1)])
    scores = [
        score_row(11, leaderboard_id=None),
        score_row(12, problem_name=None, leaderboard_id=None),
        score_row(13, problem_name="qr"),
    ]
    write(tmp_path / "in", "zzz", scores)
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert by_submission(made.runs, "problem") == {
        1: "amd-fp8-mm", 2: "amd-identity-renamed", 3: "amd-all2all", 4: "amd-ag-gemm", 5: "board-12345",
        11: "trimul", 13: "qr",
    }  # fmt: skip
    assert sorted((row["submission_id"], row["item"]) for row in made.boardless) == [(6, 5), (12, 1)]
    problems = {row["problem"]: row for row in made.tables["problems"]}
    assert {name: (row["curated"], row["scoring"], row["upstream_id"]) for name, row in problems.items()} == {
        "amd-fp8-mm": (True, "per_case", "399"),
        "amd-identity-renamed": (False, "per_case", "398"),
        "amd-all2all": (False, "per_case", "563"),
        "amd-ag-gemm": (False, "per_case", "565"),
        "board-12345": (False, "per_case", "12345"),
        "no-rows-yet": (False, "aggregate", "1000"),
        "qr": (False, "aggregate", "496"),
        "trimul": (True, "aggregate", str(TRIMUL.upstream_id)),
    }
    assert problems["amd-identity-renamed"]["deadline_at"] == datetime(2025, 7, 1, tzinfo=UTC)
    plain = problems["board-12345"]
    assert [plain[name] for name in ("slug", "family", "title", "axes", "inputs", "outputs", "tags", "ranking_by")] == [
        "kernelmart-board-12345", "uncategorized", "board-12345", "{}", "[]", "[]", [], None
    ]  # fmt: skip


def test_a_board_of_runs_without_any_case_is_still_per_case(tmp_path: Path) -> None:
    write(tmp_path / "in", "submissions", [case_row(1, 1, leaderboard_id=398, run_result={"check": "fail"})])
    (problem,) = normalised(tmp_path / "in", tmp_path / "out").tables["problems"]
    assert (problem["problem"], problem["scoring"]) == ("amd-identity", "per_case")


def test_a_board_without_facts_has_documents_of_ours_and_is_ranked(tmp_path: Path) -> None:
    write(tmp_path / "in", "submissions", [case_row(1, 1, case(spec="size: 4; Case: mixed"), leaderboard_id=398)])
    write(tmp_path / "in", "zzz", [score_row(2, problem_name="qr")])
    made = normalised(tmp_path / "in", tmp_path / "out")
    runs = {run["problem"]: run for run in made.runs}
    cases = {row["problem"]: row for row in made.tables["cases"]}
    assert all(run["eligible"] and run["comparison_key"] for run in runs.values())
    assert json.loads(cases["amd-identity"]["document"]) == {
        "apiVersion": "kernelmart/v1",
        "kind": "Case",
        "spec": {"problem": "amd-identity", "axes": {"size": 4, "case": "mixed"}},
    }
    assert (cases["amd-identity"]["axes"], cases["amd-identity"]["tensors"]) == ('{"case":"mixed","size":4}', None)
    assert (cases["qr"]["kind"], cases["qr"]["statistic"], cases["qr"]["suite_cases"]) == ("suite", "unspecified", None)
    assert runs["qr"]["primary_statistic"] == "unspecified"
    for row in cases.values():
        assert row["workload_digest"] == runs[row["problem"]]["workload_digest"]
        assert row["correctness"] == '{"comparator":"kernelbot_eval"}'
        assert row["dtypes"] == []
    for row in made.tables["implementations"]:
        assert "dtypes" not in json.loads(row["document"])["spec"]["support"]
        assert json.loads(row["document"])["apiVersion"] == "kernelindex.dev/v1alpha1"


def test_a_known_source_makes_an_identity_final(tmp_path: Path) -> None:
    write(tmp_path / "in", "zzz", [score_row(1), score_row(2), score_row(3, file_name=""), score_row(4, runner=None)])
    known = {
        "submission_id": [1, 3, 4, 99],
        "file_name": ["x.py"] * 4,
        "content_digest": [DIGEST] * 4,
        "size_bytes": [7] * 4,
    }
    write(tmp_path / "in", "source_digests", pa.table(known))
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert by_submission(made.runs, "identity") == {1: "final", 2: "provisional", 3: "final", 4: None}
    sources = {
        row["submission_key"]: json.loads(row["document"])["spec"].get("source")
        for row in made.tables["implementations"]
    }
    assert sources == {
        "gpumode-kernelbot:1": {"contentDigest": DIGEST, "fileName": "kernel.py", "sizeBytes": 7},
        "gpumode-kernelbot:2": None,
        "gpumode-kernelbot:3": {"contentDigest": DIGEST, "sizeBytes": 7},
    }
    assert by_submission(made.tables["submissions"], "source_digest", "source_bytes") == {
        1: (DIGEST, 7), 2: (None, None), 3: (DIGEST, 7), 4: (DIGEST, 7)
    }  # fmt: skip


def test_one_submission_on_several_gpus_has_an_implementation_for_each(tmp_path: Path) -> None:
    labels = ["B200", "B200_Nebius", "H100", "RTX 5090"]
    rows = [score_row(1, 0.1 + i, runner=label, status="succeeded") for i, label in enumerate(labels)]
    write(tmp_path / "in", "trimul_submissions", rows)
    made = normalised(tmp_path / "in", tmp_path / "out")
    runs = {run["runner"]: run for run in made.runs}
    assert [run["run_id"] for run in made.runs] == [
        f"gpumode-kernelbot:submission/1/leaderboard/{label}" for label in labels
    ]
    assert runs["B200"]["implementation_digest"] == runs["B200_Nebius"]["implementation_digest"]
    assert len({run["implementation_digest"] for run in made.runs}) == len(made.tables["implementations"]) == 3
    assert len({run["environment_digest"] for run in made.runs}) == len(made.tables["environments"]) == 4
    assert sorted(row["products"] for row in made.tables["implementations"]) == [
        ["NVIDIA B200"],
        ["NVIDIA H100"],
        ["RTX 5090"],
    ]
    (submission,) = made.tables["submissions"]
    assert (submission["score_s"], submission["author_key"]) == (0.1, "gpumode-kernelbot:user/3")
    assert [entry["detail"] for entry in made.drift if entry["field"] == "runner"] == ["RTX 5090"]


def test_authors_of_per_case_files_hold_for_one_content_of_one_file(tmp_path: Path) -> None:
    digests = {
        name: oracle.sha256(write(tmp_path / "in", name, [case_row(i, i, user_id=3)]).read_bytes())[7:19]
        for i, name in enumerate(("submissions", "zzz"), 1)
    }
    scores = [
        score_row(11, user_id="3", user_name="old", submission_time=datetime(2025, 1, 1)),
        score_row(12, user_id="3", user_name="new", submission_time=datetime(2025, 1, 2)),
        score_row(13, user_id="3", user_name="", submission_time=datetime(2025, 1, 3)),
        score_row(14, user_id=None),
        score_row(15, user_id="4", user_name=None),
    ]
    write(tmp_path / "in", "a", scores)
    made = normalised(tmp_path / "in", tmp_path / "out")
    assert by_submission(made.tables["submissions"], "author_key") == {
        1: f"gpumode-kernelbot:export/{digests['submissions']}/3",
        2: f"gpumode-kernelbot:export/{digests['zzz']}/3",
        11: "gpumode-kernelbot:user/3",
        12: "gpumode-kernelbot:user/3",
        13: "gpumode-kernelbot:user/3",
        14: None,
        15: "gpumode-kernelbot:user/4",
    }
    shown = {
        row["author_key"]: (
            row["author_name"],
            row["project_name"],
            row["project_slug"],
            row["stable"],
            row["submissions"],
        )
        for row in made.tables["authors"]
    }
    assert shown == {
        f"gpumode-kernelbot:export/{digests['submissions']}/3": (
            None,
            "KernelBot user 3",
            "kernelbot-user-3",
            False,
            1,
        ),
        f"gpumode-kernelbot:export/{digests['zzz']}/3": (None, "KernelBot user 3", "kernelbot-user-3", False, 1),
        "gpumode-kernelbot:user/3": ("new", "new", "kernelbot-user-3", True, 3),
        "gpumode-kernelbot:user/4": (None, "KernelBot user 4", "kernelbot-user-4", True, 1),
    }
