"""Every row of every answer of SOL-ExecBench is accounted for, and every surprise is told."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785

from assets.sol_execbench.normalise import VERSION, normalise
from assets.sol_execbench.read import Answer
from tests.sol_answers import (
    FETCHED_AT,
    answer,
    corpus,
    counts,
    definition,
    drift,
    listed,
    made_of,
    one_kernel,
    rejects,
    submission,
)


def test_rows_that_cannot_be_used_are_rejected_with_a_reason_each() -> None:
    rows = [
        submission("x", 1),
        submission(2, 1, finished_at="soon"),
        submission(3, 9),
        submission(4, "nine"),
        submission(5, 1, username="\ud800"),
        17,
        submission(6, 1),
    ]
    tables = made_of(one_kernel(*rows))
    reasons = ["BAD_ID", "BAD_TIME", "NO_PROBLEM", "NO_PROBLEM", "BAD_TEXT", "NOT_AN_OBJECT"]
    assert rejects(tables) == [
        ("submissions/1.json", f"submissions/{index}", reason) for index, reason in enumerate(reasons)
    ]
    assert [row["submission_id"] for row in tables["results"]] == [6]
    assert counts(tables)["submissions/1.json"] == (7, 1, 0, 6)


def test_a_repeated_key_rejects_its_row_alone() -> None:
    text = json.dumps({"data": {"submissions": [submission(5, 1), submission(6, 1)], "total": 2}})
    page = Answer.of("submissions/1.json", text.replace('{"id": 5,', '{"id": 7, "id": 5,', 1).encode())
    tables = made_of([*corpus([listed(1)], [definition(1)]), page])
    assert rejects(tables) == [("submissions/1.json", "submissions/0", "DUPLICATE_KEYS")]
    assert [row["submission_id"] for row in tables["results"]] == [6]


def test_a_definition_that_does_not_hold_takes_its_submissions_along() -> None:
    answers = corpus(
        [listed(1), listed(2)],
        [definition(1, axes=[]), definition(2)],
        {"1": [submission(5, 1)], "2": [submission(6, 2)]},
    )
    tables = made_of(answers)
    assert rejects(tables) == [
        ("kernels/1.json", "definition", "BAD_DEFINITION"),
        ("submissions/1.json", "submissions/0", "NO_PROBLEM"),
    ]
    assert counts(tables) == {
        "kernels.json": (2, 2, 0, 0),
        "kernels/1.json": (1, 0, 0, 1),
        "kernels/2.json": (1, 1, 0, 0),
        "submissions/1.json": (1, 0, 0, 1),
        "submissions/2.json": (1, 1, 0, 0),
    }
    assert [row["problem"] for row in tables["problems"]] == ["002_copy"]
    assert drift(tables) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"axes": {"n": {"type": "var"}, "N": {"type": "var"}}}, "NAME_COLLISION"),
        ({"axes": {"n": {"type": "const", "value": 2**60}}}, "NUMBER_OUT_OF_RANGE"),
        ({"axes": {"n": {"type": "expr", "expression": "2 ** 3"}}}, "BAD_EXPRESSION"),
        ({"inputs": {"x": {"shape": ["m"], "dtype": "float32"}}}, "UNBOUND_AXIS"),
        ({"workloads": None}, "BAD_DEFINITION"),
        ({"id": "one"}, "BAD_ID"),
        ({"name": "\udc00"}, "BAD_TEXT"),
    ],
)
def test_a_rejected_definition_says_why(changes: dict[str, Any], reason: str) -> None:
    tables = made_of([answer("kernels.json", {"kernels": []}), answer("kernels/1.json", definition(1, **changes))])
    assert rejects(tables) == [("kernels/1.json", "definition", reason)]
    assert tables["problems"] == tables["cases"] == []


def test_a_definition_that_is_no_object_is_rejected() -> None:
    tables = made_of([answer("kernels.json", {"kernels": []}), answer("kernels/1.json", None)])
    assert rejects(tables) == [("kernels/1.json", "definition", "NOT_AN_OBJECT")]


def test_of_two_kernels_with_one_name_the_smaller_id_keeps_it() -> None:
    answers = corpus(
        [listed(2, name="same"), listed(10, name="same")],
        [definition(10, name="same"), definition(2, name="same")],
        {"2": [submission(5, 2)], "10": [submission(6, 10)]},
    )
    tables = made_of(answers)
    assert rejects(tables) == [
        ("kernels/10.json", "definition", "NAME_TAKEN"),
        ("submissions/10.json", "submissions/0", "NO_PROBLEM"),
    ]
    assert json.loads(tables["rejects"][0]["raw"])["workloads"][0]["axes"] == {"n": 10}
    assert [row["upstream_id"] for row in tables["problems"]] == ["2"]


def test_a_submission_seen_again_is_a_duplicate() -> None:
    same = submission(5, 1)
    answers = corpus(
        [listed(1), listed(2)],
        [definition(1), definition(2)],
        {"1": [same, submission(6, 1)], "1.1": [same, same], "2": [same]},
    )
    tables = made_of(answers)
    assert [(row["submission_id"], row["locator"]) for row in tables["results"]] == [
        (5, "submissions/1.1.json"),
        (6, "submissions/1.json"),
    ]
    assert counts(tables)["submissions/1.1.json"] == (2, 1, 1, 0)
    assert counts(tables)["submissions/1.json"] == (2, 1, 1, 0)
    assert counts(tables)["submissions/2.json"] == (1, 0, 1, 0)
    assert [row["kind"] for row in tables["drift"]] == ["conflict"]
    assert drift(tables)[0][:2] == ("submissions/2.json", "kernel_id")


def test_of_copies_that_differ_the_first_by_content_is_kept_and_told() -> None:
    copies = [submission(5, 1, status=status) for status in ("RUNNING", "COMPLETED", "FAILED")]
    kept = min(copies, key=lambda row: hashlib.sha256(rfc8785.dumps(row)).hexdigest())
    tables = made_of(corpus([listed(1)], [definition(1)], {"1": copies[:2], "1.1": copies[2:]}))
    (row,) = tables["submissions"]
    assert row["upstream_status"] == kept["status"]
    assert len(tables["results"]) == len(tables["implementations"]) == 1
    assert tables["authors"][0]["submissions"] == 1
    ((_, field, kind, detail),) = [entry for entry in drift(tables) if entry[2] == "conflict"]
    assert (field, kind) == ("id", "conflict")
    assert detail.startswith("submission 5 says something else in submissions/1")
    assert sum(row["rows_duplicate"] for row in tables["source_files"]) == 2


def test_a_rejected_copy_never_displaces_a_sound_one() -> None:
    tables = made_of(one_kernel(submission(5, 1, finished_at="soon"), submission(5, 1)))
    assert len(tables["results"]) == 1
    assert counts(tables)["submissions/1.json"] == (2, 1, 0, 1)


def test_a_kernel_listed_twice_is_a_duplicate() -> None:
    tables = made_of(corpus([listed(1), listed(1), listed(1, submission_count=9), "x", listed("y")], [definition(1)]))
    assert counts(tables)["kernels.json"] == (5, 1, 2, 2)
    assert sorted(rejects(tables)) == [
        ("kernels.json", "kernels/3", "NOT_AN_OBJECT"),
        ("kernels.json", "kernels/4", "BAD_ID"),
    ]
    assert ("kernels.json", "id", "conflict", "kernel 1 says something else in kernels.json") in drift(tables)


def test_listing_and_definitions_are_held_against_each_other() -> None:
    answers = corpus([listed(1), listed(2), listed(3, name="other")], [definition(1), definition(3), definition(4)])
    tables = made_of(answers)
    assert drift(tables) == [
        ("kernels.json", "definition", "missing", "kernel 2 is listed, but its definition is not there"),
        ("kernels/3.json", "name", "conflict", "the listing has another name for kernel 3"),
        ("kernels/4.json", "kernels", "missing", "kernel 4 is not in the listing"),
    ]
    assert counts(tables)["kernels.json"] == (3, 3, 0, 0)
    assert [row["problem"] for row in tables["problems"]] == ["001_copy", "003_copy", "004_copy"]


def test_a_definition_that_answers_with_another_id_is_that_kernel_and_told() -> None:
    answers = [answer("kernels.json", {"kernels": [listed(2)]}), answer("kernels/1.json", definition(2))]
    tables = made_of(answers)
    assert tables["problems"][0]["upstream_id"] == "2"
    assert drift(tables) == [
        ("kernels/1.json", "id", "conflict", "the definition asked for as 1 says it is kernel 2"),
    ]


def test_what_pages_could_not_reach_is_said() -> None:
    rows = [submission(5, 1), submission(6, 1), submission(6, 1), submission("x", 1), 17]
    tables = made_of(
        corpus([listed(1), listed(2, submission_count=3)], [definition(1), definition(2)], {"1": rows}, 120)
    )
    assert [entry for entry in drift(tables) if entry[2] == "incomplete"] == [
        ("submissions/1.json", "total", "incomplete", "120 reported, 4 obtained"),
        ("submissions/2.json", "total", "incomplete", "3 reported by the listing, 0 obtained"),
    ]


def test_pages_of_one_kernel_are_counted_together() -> None:
    pages = {"1": [submission(5, 1), submission(6, 1)], "1.1": [submission(6, 1), submission(7, 1)]}
    assert drift(made_of(corpus([listed(1)], [definition(1)], pages, 3))) == []
    told = drift(made_of(corpus([listed(1)], [definition(1)], pages, 4)))
    assert told == [("submissions/1.1.json", "total", "incomplete", "4 reported, 3 obtained")]


def test_new_fields_are_told_once_at_the_first_answer_by_name() -> None:
    answers = [
        answer("kernels.json", {"kernels": [listed(1, colour=1), listed(2, colour=2)], "page": 1}),
        answer("kernels/2.json", definition(2, shape_hint="x")),
        answer("kernels/1.json", definition(1, shape_hint="y", workloads=[{"axes": {"n": 1}, "seed": 5}])),
        answer("submissions/2.json", {"submissions": [submission(6, 2, energy_j=1.0)], "cursor": None}),
        answer("submissions/1.json", {"submissions": [submission(5, 1, energy_j=1.0, review_note="x")]}),
    ]
    assert [entry[:3] for entry in drift(made_of(answers))] == [
        ("kernels.json", "colour", "added"),
        ("kernels.json", "page", "added"),
        ("kernels/1.json", "shape_hint", "added"),
        ("kernels/1.json", "workloads.seed", "added"),
        ("submissions/1.json", "energy_j", "added"),
        ("submissions/2.json", "cursor", "added"),
    ]


def test_a_field_that_is_gone_everywhere_is_told() -> None:
    rows = [submission(5, 1), submission(6, 1)]
    for row in rows:
        del row["worker_id"]
    del rows[0]["sol_score"]
    told = drift(made_of(one_kernel(*rows)))
    assert [entry[:3] for entry in told] == [("submissions/1.json", "worker_id", "missing")]


def test_values_that_nobody_knows_are_told() -> None:
    rows = [submission(5, 1, gpu_type="TPU_v5", status="EXPLODED"), submission(6, 1, submission_mode="rehearsal")]
    answers = corpus([listed(1)], [definition(1, latency_unit="us", sol_is_dummy="no")], {"1": rows})
    assert drift(made_of(answers)) == [
        ("kernels/1.json", "latency_unit", "unknown_value", "us"),
        ("kernels/1.json", "sol_is_dummy", "retyped", "a value that is no boolean counts as yes"),
        ("submissions/1.json", "gpu_type", "unknown_value", "TPU_v5"),
        ("submissions/1.json", "status", "unknown_value", "EXPLODED"),
        ("submissions/1.json", "submission_mode", "unknown_value", "rehearsal"),
    ]


def test_answers_that_are_only_recorded_have_no_rows() -> None:
    answers = [
        *corpus([listed(1)], [definition(1)]),
        Answer.of("leaderboards/1.B200.v1.1.json", b'{"data": {"rankings": [{"rank": 1}]}}'),
        Answer.of("notes.txt", b"hello"),
    ]
    tables = made_of(answers)
    assert counts(tables)["leaderboards/1.B200.v1.1.json"] == (0, 0, 0, 0)
    assert counts(tables)["notes.txt"] == (0, 0, 0, 0)
    assert drift(tables) == [("notes.txt", "data", "added", "an answer of a kind that nobody reads")]


def test_files_are_recorded_with_what_is_known_of_them() -> None:
    listing = answer("kernels.json", {"kernels": []})
    table = normalise([listing], FETCHED_AT, "2026-11-30")["source_files"]
    assert table.to_pylist() == [
        {
            "content_digest": listing.content_digest,
            "locator": "kernels.json",
            "source": "sol-execbench",
            "revision": "2026-11-30",
            "verified": True,
            "media_type": "application/json",
            "size_bytes": listing.size_bytes,
            "fetched_at": FETCHED_AT,
            "parser": VERSION,
            **dict.fromkeys(("rows_read", "rows_kept", "rows_duplicate", "rows_rejected"), 0),
        }
    ]
    assert all(row["first_seen_at"] == FETCHED_AT for row in made_of([])["drift"])
