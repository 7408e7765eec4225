"""Rows of KernelBot's files that cannot be typed are set aside; a file that cannot be read is named in one line."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.kernelbot.read import SubmissionsFile, raw_json
from tests.kernelbot_folder import Row, case_row, opened, raw_file, read, rejected, replaced, score_row, table, write
from tests.test_columns import text_of_bytes
from warehouse.errors import UnreadableError


@pytest.mark.parametrize("value", ["x", "", "1.5", None, str(2**63), [1], True, 1.5, math.nan])
def test_a_submission_id_that_is_no_integer_rejects_the_row(tmp_path: Path, value: Any) -> None:
    typed, file = read(write(tmp_path, "a", [score_row(value)]))
    assert (typed, rejected(file)) == ([], [("0", "BAD_ID")])
    assert file.rejects[0]["detail"] == "submission_id is no 64-bit integer"
    assert json.loads(file.rejects[0]["raw"])["runner"] == "B200"


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["yesterday"]),
        pa.array([2**53], pa.timestamp("ms")),
        pa.array([2**63 - 1], pa.timestamp("us")),
        pa.array([-(2**62)], pa.timestamp("ms", "UTC")),
        pa.array([1748769074]),
        pa.array([[1]]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_time_that_cannot_be_written_rejects_the_row(tmp_path: Path, column: pa.Array) -> None:
    typed, file = read(write(tmp_path, "a", replaced(table([score_row()]), "submission_time", column)))
    assert (typed, rejected(file)) == ([], [("0", "BAD_TIME")])


@pytest.mark.parametrize("name", ["problem_name", "user_id", "user_name", "file_name", "status", "mode", "runner"])
def test_text_that_is_not_utf8_rejects_its_row_alone(tmp_path: Path, name: str) -> None:
    rows = replaced(table([score_row(1), score_row(2), score_row(3)]), name, text_of_bytes(b"a", b"b\xff", b"c"))
    typed, file = read(write(tmp_path, "a", rows))
    assert [row["submission_id"] for row in typed] == [1, 3]
    assert rejected(file) == [("1", "BAD_TEXT")]
    assert file.rejects[0]["detail"] == f"{name} is not UTF-8 text"
    assert json.loads(file.rejects[0]["raw"])[name] == "b\ufffd"


@pytest.mark.parametrize(
    "field", ["run_result.benchmark.0.spec", "run_result.check", "run_system_info.gpu", "run_system_info.os"]
)
@pytest.mark.parametrize("run_id", [10, None])
def test_a_field_that_is_not_utf8_rejects_its_row_alone(tmp_path: Path, field: str, run_id: int | None) -> None:
    name, _, inner = field.partition(".")
    struct = pa.StructArray.from_arrays([text_of_bytes(b"a", b"\xff")], [inner])
    typed, file = read(write(tmp_path, "s", replaced(table([case_row(1, run_id), case_row(2, run_id)]), name, struct)))
    assert [row["submission_id"] for row in typed] == [1]
    assert (rejected(file), file.rejects[0]["detail"]) == ([("1", "BAD_TEXT")], f"{field} is not UTF-8 text")


def test_code_is_never_read_nor_shown(tmp_path: Path) -> None:
    rows = replaced(table([score_row("x"), score_row("2")]), "code", text_of_bytes(b"\xff", b"\xff"))
    typed, file = read(write(tmp_path, "a", rows))
    assert [row["submission_id"] for row in typed] == [2]
    assert rejected(file) == [("0", "BAD_ID")]
    assert "code" not in json.loads(file.rejects[0]["raw"])


def test_a_run_id_with_a_slash_rejects_the_row(tmp_path: Path) -> None:
    typed, file = read(write(tmp_path, "submissions", [case_row(1, "10/benchmark/0"), case_row(1, "10")]))
    assert ([row["upstream_run_id"] for row in typed], rejected(file)) == (["10"], [("0", "BAD_ID")])


def test_every_row_of_an_unknown_schema_is_rejected(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": math.nan, "code": "x", "c": b"\xff"}, {"a": 2**60, "b": 0.5, "code": "y", "c": None}]
    typed, file = read(write(tmp_path, "a", rows))
    assert (file.family, typed, dict(file.drift)) == ("unknown", [], {})
    assert rejected(file) == [("0", "UNKNOWN_SCHEMA"), ("1", "UNKNOWN_SCHEMA")]
    assert [json.loads(reject["raw"]) for reject in file.rejects] == [
        {"a": 1, "b": "nan", "c": "\ufffd"}, {"a": str(2**60), "b": 0.5}
    ]  # fmt: skip


def test_what_a_reject_shows_is_canonical_and_cut() -> None:
    raw = {"z": "x" * 3000, "a": {"t": datetime(2025, 1, 1), "n": None}, "l": [math.inf, True, "\ud800"]}
    wanted = '{"a":{"t":"2025-01-01 00:00:00"},"l":["inf",true,"?"],"z":"' + "x" * 2000 + '…"}'
    assert raw_json(raw) == wanted


# --- files that cannot be read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[case_row()], [score_row()]], ids=["per_case", "aggregate"])
def test_a_file_of_no_rows_has_none(tmp_path: Path, rows: list[Row]) -> None:
    typed, file = read(write(tmp_path, "a", table(rows).slice(0, 0)))
    assert (typed, file.rejects, file.rows_read) == ([], [], 0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty; fetch it again"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "a Git LFS pointer stands in place of the file; fetch the file itself",
        ),
        (b"\n <!doctype html><html>502</html>", "an HTML page stands in place of the file; fetch it again"),
        (b'{"error": "gone"}', "it is not a Parquet file; fetch it again"),
        (b"PAR1 and nothing else", "Parquet"),
    ],
)
def test_a_file_that_is_something_else_is_named_with_what_it_is(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "submissions.parquet"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=rf"^submissions\.parquet: .*{complaint}") as raised:
        opened(path)
    assert "\n" not in str(raised.value)


def test_a_file_cut_short_anywhere_is_unreadable(tmp_path: Path) -> None:
    whole = write(tmp_path, "whole", [score_row(i) for i in range(2000)]).read_bytes()
    path = tmp_path / "submissions.parquet"
    for length in (4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(UnreadableError, match=r"^submissions\.parquet: "):
            opened(path)


def test_damage_inside_a_file_is_one_line_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "submissions.parquet"
    pq.write_table(table([score_row(i) for i in range(2000)]), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\x00" * column.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"^submissions\.parquet: cannot be read to its end: ") as raised:
        list(SubmissionsFile(raw_file(path)).rows())
    assert "\n" not in str(raised.value)
