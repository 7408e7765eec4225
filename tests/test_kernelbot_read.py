"""KernelBot's files are read in whatever form an export has, and what is new or missing in it is noted."""

from __future__ import annotations

import math
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assets.kernelbot import read as reading
from assets.kernelbot.read import BATCH_ROWS, SubmissionsFile, content_digest
from tests import oracle
from tests.kernelbot_folder import (
    MOMENT,
    SPEC,
    Row,
    case,
    case_row,
    read,
    rejected,
    replaced,
    result,
    score_row,
    table,
    write,
)
from tests.test_columns import text_of_bytes

OBSERVED = MOMENT.replace(tzinfo=UTC)


def drifted(file: SubmissionsFile, kind: str) -> list[str]:
    return sorted(field for field, found, _ in file.drift if found == kind)


def stated(row: Row) -> Row:
    """The columns that say something."""
    return {name: value for name, value in row.items() if value is not None}


# --- the two families -----------------------------------------------------------------------------------------


def test_a_per_case_row_is_typed(tmp_path: Path) -> None:
    row = case_row(
        1, 10, case(), case("2000", best=None), run_compilation={"success": True}, run_meta={"success": False}
    )
    (typed,), file = read(write(tmp_path, "submissions", [row]))
    assert file.family == "per_case"
    assert (file.rejects, drifted(file, "added"), drifted(file, "retyped")) == ([], [], [])
    assert stated(typed) == {
        "item": 0,
        "submission_id": 1,
        "leaderboard_id": "399",
        "user_id": "3",
        "code_id": "5",
        "file_name": "kernel.py",
        "submitted_at": OBSERVED,
        "upstream_run_id": "10",
        "mode": "leaderboard",
        "score": 1.0005e-06,
        "passed": True,
        "label": "AMD Instinct MI300X",
        "compiled": True,
        "ran": False,
        "system": '{"device_count":1,"gpu":"AMD Instinct MI300X","platform":"Linux","torch":"2.8"}',
        "labels": '{"platform":"Linux","torch":"2.8"}',
        "cases": [
            {"index": 0, "spec": SPEC, "runs": "3", "mean": "1000.5", "std": "5.5", "best": "900.0", "worst": "1100.0"},
            {"index": 1, "spec": SPEC, "runs": "3", "mean": "2000", "std": "5.5", "best": None, "worst": "1100.0"},
        ],
    }


def test_an_aggregate_row_is_typed(tmp_path: Path) -> None:
    (typed,), file = read(write(tmp_path, "trimul_submissions", [score_row(7, 0.25, code="import torch")]))
    assert file.family == "aggregate"
    assert not file.drift
    assert stated(typed) == {
        "item": 0,
        "submission_id": 7,
        "leaderboard_id": "496",
        "problem_name": "trimul",
        "user_id": "3",
        "user_name": "someone",
        "code_id": "5",
        "file_name": "kernel.py",
        "submitted_at": OBSERVED,
        "upstream_status": "succeeded",
        "mode": "leaderboard",
        "score": 0.25,
        "passed": True,
        "label": "B200",
    }


def test_a_submission_without_a_public_score_has_no_score_mode_or_runner(tmp_path: Path) -> None:
    row = score_row(7, None, passed=None, mode=None, runner=None, user_name="", file_name="")
    (typed,), file = read(write(tmp_path, "a", replaced(table([row]), "score", pa.nulls(1))))
    assert file.family == "aggregate"
    assert {"score", "mode", "passed", "label", "user_name", "file_name"}.isdisjoint(stated(typed))


def test_cases_are_in_order_of_their_index_and_only_where_a_row_has_them(tmp_path: Path) -> None:
    many = {
        f"benchmark.{i}.{name}": value for i in (10, 2, 0) for name, value in (("spec", f"m: {i}"), ("mean", str(i)))
    }
    rows = [
        case_row(1, 1, run_result=many | {"benchmark-count": "3"}),
        case_row(2, 2, run_result={"check": "fail", "test-count": "1", "test.0.status": "fail"}),
        case_row(3, 3, run_result=None),
        case_row(4, 4, run_result={"benchmark.2.mean": "7"}),
    ]
    typed, file = read(write(tmp_path, "submissions", rows))
    assert [[(entry["index"], entry["mean"]) for entry in row["cases"] or []] for row in typed] == [
        [(0, "0"), (2, "2"), (10, "10")], [], [], [(2, "7")]
    ]  # fmt: skip
    assert [row["verdict"] for row in typed] == [None, "fail", None, None]
    assert drifted(file, "added") == []


# --- forms of columns -----------------------------------------------------------------------------------------


def test_fields_that_come_and_go_are_drift_and_hurt_nothing(tmp_path: Path) -> None:
    row = case_row(
        run_result=result(case(), **{"benchmark.0.median": "1", "colour": "red"}), index=1, __index_level_0__=0
    )
    row["run_system_info"] = {"gpu": "H100", "hostname": "x"}
    (typed,), file = read(write(tmp_path, "submissions", table([row]).drop_columns(["code_id", "user_id"])))
    assert drifted(file, "added") == [
        "index",
        "run_result.benchmark.0.median",
        "run_result.colour",
        "run_system_info.hostname",
    ]
    assert drifted(file, "missing") == [
        "code_id",
        "run_system_info.cpu",
        "run_system_info.device_count",
        "run_system_info.platform",
        "run_system_info.runtime",
        "run_system_info.torch",
        "user_id",
    ]
    assert (typed["code_id"], typed["user_id"], typed["label"], typed["labels"]) == (None, None, "H100", "{}")
    assert typed["system"] == '{"gpu":"H100","hostname":"x"}'


def test_rows_are_typed_alike_whatever_types_the_columns_have(tmp_path: Path) -> None:
    rows = [case_row(1, 10), case_row(2, 11, run_passed=False, run_score=None)]
    plain = table(rows)
    wanted, _ = read(write(tmp_path, "plain", plain))
    shaped = plain
    for name, column in {
        "submission_id": pa.array(["1", "2"], pa.large_string()),
        "leaderboard_id": pa.array([399.0, 399.0]),
        "user_id": pa.array([3, 3], pa.int32()).dictionary_encode(),
        "submission_time": pa.array([int(OBSERVED.timestamp() * 10**6) * 1000 + 999] * 2, pa.timestamp("ns")),
        "file_name": pa.array([b"kernel.py"] * 2, pa.large_binary()),
        "code_id": pa.array([Decimal(5), Decimal(5)]),
        "run_id": pa.array([b"10", b"11"]),
        "run_mode": pa.array(["leaderboard"] * 2).dictionary_encode(),
        "run_score": pa.array(["1.0005e-06", None]),
        "run_passed": pa.array([1, 0]),
    }.items():
        shaped = replaced(shaped, name, column)
    result_fields = plain["run_result"].combine_chunks().type
    encoded = [child.dictionary_encode() for child in plain["run_result"].combine_chunks().flatten()]
    names = [result_fields.field(i).name for i in range(result_fields.num_fields)]
    shaped = replaced(shaped, "run_result", pa.StructArray.from_arrays(encoded, names))
    found, file = read(write(tmp_path, "shaped", shaped))
    assert found == wanted
    assert drifted(file, "retyped") == []


def test_figures_that_are_numbers_become_the_text_that_says_the_same(tmp_path: Path) -> None:
    figures = {"spec": SPEC, "mean": 1000.5, "best": 900, "worst": Decimal("1100.25"), "std": math.nan, "runs": 3.0}
    (typed,), _ = read(write(tmp_path, "submissions", [case_row(1, 10, figures)]))
    wanted = {"index": 0, "spec": SPEC, "mean": "1000.5", "best": "900", "worst": "1100.25", "std": "nan", "runs": "3"}
    assert typed["cases"] == [wanted]


@pytest.mark.parametrize(
    "name", ["run_result", "run_system_info", "run_id", "user_id", "run_score", "submission_time", "file_name"]
)
def test_a_column_of_null_type_says_nothing(tmp_path: Path, name: str) -> None:
    (typed,), file = read(write(tmp_path, "submissions", replaced(table([case_row()]), name, pa.nulls(1))))
    assert (file.rejects, drifted(file, "retyped")) == ([], [])
    absent = {"run_result": "cases", "run_system_info": "label", "run_id": "upstream_run_id", "run_score": "score"}
    assert typed[{**absent, "submission_time": "submitted_at"}.get(name, name)] is None
    assert typed["system"] == "{}" if name == "run_system_info" else typed["label"] == "AMD Instinct MI300X"


def test_not_a_number_stands_for_no_id(tmp_path: Path) -> None:
    row = case_row(run_id=math.nan, user_id=math.nan, code_id=math.nan)
    row["run_system_info"] = {"gpu": "H100", "device_count": math.nan}
    (typed,), _ = read(write(tmp_path, "submissions", [row]))
    assert (typed["upstream_run_id"], typed["user_id"], typed["code_id"]) == (None, None, None)
    assert typed["system"] == '{"gpu":"H100"}'
    assert typed["content"] is not None


def test_values_that_say_no_such_thing_are_absent_and_drift(tmp_path: Path) -> None:
    rows = [score_row(1, "soon", passed="perhaps"), score_row(2, "0.5", passed="f", mode="test")]
    typed, file = read(write(tmp_path, "a", rows))
    assert [(row["score"], row["passed"]) for row in typed] == [(None, None), (0.5, False)]
    assert drifted(file, "retyped") == ["passed", "score"]
    nested = replaced(table(rows), "mode", pa.array([["leaderboard"], []]))
    typed, file = read(write(tmp_path, "b", nested))
    assert [row["mode"] for row in typed] == [None, None]
    assert "mode" in drifted(file, "retyped")
    typed, file = read(write(tmp_path, "c", [case_row(run_result="{}", run_system_info="MI300")]))
    assert (drifted(file, "retyped"), len(typed)) == (["run_result", "run_system_info"], 1)


def test_files_that_lack_a_column_of_their_family_are_still_read(tmp_path: Path) -> None:
    (typed,), file = read(
        write(tmp_path, "a", table([score_row()]).select(["submission_id", "leaderboard_id", "score"]))
    )
    assert (file.family, typed["leaderboard_id"], typed["score"]) == ("aggregate", "496", 0.25)
    assert "problem_name" in drifted(file, "missing")
    (typed,), file = read(write(tmp_path, "b", table([case_row()]).select(["submission_id", "run_mode"])))
    assert (file.family, typed["mode"], typed["cases"], typed["system"]) == ("per_case", "leaderboard", None, "{}")
    # Without a run id the row goes by its content, which is empty here.
    assert typed["content"] == oracle.sha256("{}")[7:]


def test_rows_and_batches_keep_their_numbers(tmp_path: Path) -> None:
    count = BATCH_ROWS + 5
    rows = pa.table({"submission_id": range(count), "run_mode": ["test"] * count, "run_id": range(count)})
    typed, file = read(
        write(tmp_path, "submissions", replaced(rows, "submission_id", pa.array([None, *range(1, count)])))
    )
    assert (len(typed), file.rows_read, rejected(file)) == (count - 1, count, [("0", "BAD_ID")])
    assert all(row["item"] == row["submission_id"] for row in typed)


# --- which rows need their content -----------------------------------------------------------------------------


def test_content_is_hashed_only_where_no_run_id_tells_rows_apart(tmp_path: Path) -> None:
    rows = [
        case_row(1, 10),
        case_row(1, 11),
        case_row(1, 11, case("2")),
        case_row(2, 11),
        case_row(3, None),
        case_row(4, 12),
    ]
    typed, _ = read(write(tmp_path, "submissions", rows))
    assert [row["content"] is not None for row in typed] == [False, True, True, False, True, False]
    wanted = {"run_passed": True, "run_score": 1.0005e-06, "run_result": result(case())}
    assert typed[1]["content"] == oracle.digest(wanted)[7:]
    assert typed[2]["content"] != typed[1]["content"] == typed[4]["content"]


@pytest.mark.parametrize("all_hashes_are_one", [False, True])
def test_runs_that_are_there_twice_are_found_however_far_apart_and_no_others(
    all_hashes_are_one: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if all_hashes_are_one:
        monkeypatch.setattr(reading, "_repeated", lambda hashes: np.ones(len(hashes), np.bool_))
    count = BATCH_ROWS + 5
    # The last row is the first one again; other submissions have runs of the same number.
    submissions = pa.array([*range(count - 1), 0], pa.int64())
    runs = pa.array([*(number // 2 for number in range(count - 2)), None, 0], pa.int64())
    rows = pa.table({"submission_id": submissions, "run_mode": ["test"] * count, "run_id": runs})
    typed, _ = read(write(tmp_path, "submissions", rows))
    assert [row["item"] for row in typed if row["content"] is not None] == [0, count - 2, count - 1]


def test_content_leaves_out_what_is_absent_or_cannot_be_written() -> None:
    def of(**content: Any) -> str:
        return content_digest(content)

    assert of() == oracle.sha256("{}")[7:]
    assert (
        of(run_score=math.nan, run_passed=None, run_result={"a": None, "b": 2**53})
        == oracle.digest({"run_result": {}})[7:]
    )
    assert (
        of(run_result={"a": [1, "x"], "b": b"\xff", "c": Decimal("1.50")})
        == (oracle.digest({"run_result": {"a": [1, "x"], "b": "\ufffd", "c": "1.50"}})[7:])
    )
    assert of(run_score=1.0) == of(run_score=1) != of(run_score="1")


@pytest.mark.parametrize("run_id", [None, 10])
def test_a_message_that_is_not_utf8_does_not_keep_a_run_from_being_read(tmp_path: Path, run_id: int | None) -> None:
    struct = pa.StructArray.from_arrays([text_of_bytes(b"\xff"), pa.array([2**60])], ["test.0.message", "test-count"])
    (typed,), file = read(write(tmp_path, "submissions", replaced(table([case_row(1, run_id)]), "run_result", struct)))
    assert (file.rejects, typed["cases"]) == ([], None)
    assert typed["content"] == (
        None
        if run_id
        else oracle.digest({"run_passed": True, "run_score": 1.0005e-06, "run_result": {"test.0.message": "\ufffd"}})[
            7:
        ]
    )
