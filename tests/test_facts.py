"""The facts of KernelBot's boards are complete, agree with their digests, and cannot change unnoticed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from assets.kernelbot import facts
from assets.kernelbot.facts import FactsError, boards_as_documents, load_boards, parse_boards
from tests import oracle

CONFORMANCE = os.environ.get("KERNELMART_CONFORMANCE")
TEXT = Path(facts.__file__).with_name("boards.toml").read_text(encoding="utf-8")

BOARD = """
["sum"]
slug = "gpumode-sum"
title = "Sum"
family = "reduction"
task = "problems/sum/task.yml"
scoring = "per_case"
problem_digest = "sha256:0"
tags = ["sum"]
runners = []
inputs = ["x fp32 [m, 2]"]
outputs = ["y fp32 []"]
axes = { m = "variable", n = "m * 2" }
"""


def test_all_28_boards_load_in_the_order_of_the_file() -> None:
    boards = load_boards()
    assert len(boards) == 28
    assert list(boards) == re.findall(r'^\["([^"]+)"\]$', TEXT, re.MULTILINE)
    assert {board.scoring for board in boards.values()} == {"per_case", "aggregate"}
    assert {name for name, board in boards.items() if board.scoring == "per_case"} == {
        "amd-fp8-mm", "amd-mixture-of-experts", "amd-mla-decode"
    }  # fmt: skip
    ids = [board.upstream_id for board in boards.values() if board.upstream_id is not None]
    assert len(ids) == len(set(ids))
    assert not set(ids) & set(facts.UNLISTED_BOARDS)


@pytest.mark.parametrize("name", list(load_boards()))
def test_a_boards_documents_have_the_digests_that_it_states(name: str) -> None:
    board = load_boards()[name]
    problem = oracle.document("OperationSpec", board.operation())
    assert oracle.document_digest(problem) == board.problem_digest
    if board.suite:
        suite = oracle.document("WorkloadSuite", board.workload_suite())
        assert oracle.document_digest(suite) == board.suite.workload_digest
        assert board.statistic == board.suite.statistic
        assert board.suite.statistic == {"geom": "geomean", None: "unspecified"}.get(board.ranking_by, board.ranking_by)
    else:
        assert board.statistic == "unspecified"
        with pytest.raises(FactsError, match=f"board {name} has no suite"):
            board.workload_suite()
    assert board.dtypes == sorted(set(board.dtypes))
    assert board.dtypes


@pytest.mark.skipif(not CONFORMANCE, reason="KERNELMART_CONFORMANCE is not set")
def test_the_facts_are_those_of_the_shared_file() -> None:
    shared = json.loads(Path(str(CONFORMANCE), "upstream/kernelbot_problems.json").read_bytes())["boards"]
    made: list[dict[str, Any]] = json.loads(json.dumps(boards_as_documents()))
    assert [board["leaderboard"] for board in made] == [board["leaderboard"] for board in shared]
    for board, wanted in zip(made, shared, strict=True):
        assert board == wanted


@pytest.mark.parametrize(
    ("old", "new", "board"),
    [
        ('k_blocks = "k // 128"', 'k_blocks = "k // 64"', "amd-fp8-mm"),
        ('"a fp8_e4m3fnuz [m, k] col_major"', '"a fp8_e4m3fnuz [k, m] col_major"', "amd-fp8-mm"),
        ('"c bf16 [m, n] row_major"', '"c bf16 [m, n]"', "amd-fp8-mm"),
        ('family = "mla-attention"', 'family = "attention"', "amd-mixed-mla"),
        ("kv_lora_rank = 512", "kv_lora_rank = 513", "amd-mixed-mla"),
        ("seed = 4217 }", "seed = 4218 }", "amd-mixed-mla"),
        ('statistic = "geomean"', 'statistic = "mean"', "amd-mixed-mla"),
    ],
)
def test_a_changed_fact_is_refused_naming_its_board(old: str, new: str, board: str) -> None:
    assert old in TEXT
    with pytest.raises(FactsError, match=rf"board {board}: its (facts|suite) hash"):
        parse_boards(TEXT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "Sum"', 'titel = "Sum"', "titel"),
        ('title = "Sum"', "", "title"),
        ('title = "Sum"', 'title = "Sum"\nname = "other"', "name"),
        ('scoring = "per_case"', 'scoring = "by hand"', "scoring"),
        ('"m * 2"', '"m * q"', "axis n uses an axis that is not declared"),
        ('"m * 2"', '"m ** 2 +"', "cannot be read"),
        ("[m, 2]", "[m, q]", r"shapes use undeclared axes \['q'\]"),
        ("x fp32 [m, 2]", "x fp32 m", "is not of the form"),
        ('scoring = "per_case"', 'scoring = "per_case"\nranking_by = "median"', "ranking_by"),
        ("", "", "its facts hash to sha256:[0-9a-f]{64}, not sha256:0"),
    ],
)
def test_facts_that_make_no_sense_are_refused_naming_the_board(old: str, new: str, complaint: str) -> None:
    with pytest.raises(FactsError, match=rf"(?s)board sum: .*{complaint}"):
        parse_boards(BOARD.replace(old, new, 1))


def test_a_suite_belongs_to_aggregate_scoring() -> None:
    board = load_boards()["amd-fp8-mm"]
    sum_digest = oracle.document_digest(
        oracle.document(
            "OperationSpec",
            {
                "family": "reduction",
                "axes": {
                    "m": {"role": "variable", "type": "integer"},
                    "n": {"role": "derived", "type": "integer", "expression": "m * 2"},
                },
                "inputs": [{"name": "x", "tensor": {"dtype": "fp32", "shape": ["m", 2]}}],
                "outputs": [{"name": "y", "tensor": {"dtype": "fp32", "shape": []}}],
                "semantics": {"mutation": "none", "determinism": "unspecified"},
            },
        )
    )
    whole = BOARD.replace("sha256:0", sum_digest)
    assert parse_boards(whole)["sum"].problem_digest == sum_digest != board.problem_digest
    with pytest.raises(FactsError, match="board sum: a suite belongs to aggregate scoring"):
        parse_boards(whole.replace("per_case", "aggregate"))
    suite = '\n["sum".suite]\nstatistic = "mean"\nworkload_digest = "sha256:1"\ncases = [{ m = 1 }]\n'
    with pytest.raises(FactsError, match="board sum: a suite belongs to aggregate scoring"):
        parse_boards(whole + suite)
    with pytest.raises(FactsError, match=r"board sum: its suite hashes to sha256:[0-9a-f]{64}, not sha256:1"):
        parse_boards(whole.replace("per_case", "aggregate") + suite)


def test_the_revision_of_the_facts_is_the_digest_of_their_file() -> None:
    assert facts.facts_revision() == oracle.sha256(TEXT)


def test_cases_of_a_suite_go_by_their_position_unless_they_have_an_id() -> None:
    suite = facts.Suite(
        statistic="mean",
        workload_digest="sha256:1",
        cases=[{"m": 1}, {"id": "big", "axes": {"m": 2}}],  # type: ignore[arg-type]
    )
    assert suite.cases == ({"externalId": "0", "axes": {"m": 1}}, {"externalId": "big", "axes": {"m": 2}})
