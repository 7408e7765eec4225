"""The odd rows of KernelBot's aggregate files, each with what must become of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from replica.expectations import KERNELBOT, hostile_text
from replica.traps import TIME, Trap


def aggregate_traps() -> list[Trap]:
    """Every odd row of the aggregate files, in the order in which each file has them at its end."""
    traps: list[Trap] = []

    def add(
        note: str,
        *,
        file: str = "nvidia_nvfp4_submissions",
        outcome: str = "kept",
        reason: str | None = None,
        reasons: Sequence[str] = (),
        flags: Sequence[str] = (),
        observed_at: str | None = None,
        **columns: Any,
    ) -> dict[str, Any]:
        number = len(traps)
        row: dict[str, Any] = {
            "submission_id": 910_000_000 + number,
            "leaderboard_id": 597,
            "problem_name": "nvfp4_gemm",
            "user_id": "70000000000000001",
            "user_name": "trapper",
            "code_id": number,
            "file_name": "submission.py",
            "submission_time": TIME + number * 1_000_000,
            "status": "succeeded",
            "score": 0.5,
            "passed": True,
            "mode": "leaderboard",
            "runner": "NVIDIA",
            **columns,
        }
        run_id = f"{KERNELBOT}:submission/{row['submission_id']}/leaderboard"
        run_ids = [run_id if row["runner"] is None else f"{run_id}/{row['runner']}"]
        traps.append(Trap(file, row, note, outcome, reason, run_ids, list(reasons), list(flags), {}, observed_at))
        return row

    nothing: dict[str, Any] = {"score": None, "passed": None, "mode": None, "runner": None}
    tomorrow: dict[str, Any] = {"leaderboard_id": None, "problem_name": "nvfp4_tomorrow"}
    unknown = ["MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT"]
    add("null score, mode, runner and passed", **nothing, reasons=["NOT_PASSED", *unknown])
    add("hacked, nothing left", **nothing, status="hacked", reasons=["REVOKED", *unknown])
    add("hacked with a score", status="hacked", reasons=["REVOKED"])
    add("null score", score=None, reasons=["NO_VALUE"])
    add("null passed", passed=None, reasons=["NOT_PASSED"])
    add("not passed, with a score", passed=False, reasons=["NOT_PASSED"])
    add("null mode", mode=None, reasons=["MODE_UNKNOWN"])
    add("null runner", runner=None, reasons=["NO_ENVIRONMENT"])
    add("mode secret", mode="secret", reasons=["MODE_SECRET"])
    for status in (None, "active", "failed", "quarantined"):
        add(f"status {status} of a row that passed", status=status)
    add("score 4.6e-25", score=4.6e-25, reasons=["BELOW_FLOOR"])
    add("score under 100 ns", score=9.9e-8, reasons=["BELOW_FLOOR"])
    add("score of 100 ns, on a board of tomorrow", score=1e-7, **tomorrow)
    add("score of 10 us", score=1.0048658277929109e-05, **tomorrow)
    for score in (math.nan, math.inf, -math.inf):
        add(f"score {score}", score=score, reasons=["NO_VALUE"], flags=["NOT_FINITE"])
    for score in (-1.0, 0.0):
        add(f"score {score}", score=score, reasons=["NO_VALUE"], flags=["OUT_OF_RANGE"])
    for runner in ("MI400", "L40S", "Gaudi 3", "b200", "RTX 5090", hostile_text[1]):
        add(f"unknown runner {runner!r}", runner=runner)
    add("no board", leaderboard_id=None, problem_name=None, outcome="rejected", reason="NO_BOARD")
    add("null submission id", submission_id=None, outcome="rejected", reason="BAD_ID")
    add("null author", user_id=None, user_name=None)
    add("empty user name", user_id="70000000000000002", user_name="")
    add("empty file name", file_name="")
    add("null file name", file_name=None)
    add("null time", submission_time=None)
    add("before 1970", submission_time=-1_000_500, observed_at="1969-12-31T23:59:58.999Z")
    add("below a millisecond", submission_time=TIME + 999, observed_at="2026-01-01T00:00:00.123Z")
    for number, text in enumerate(hostile_text):
        add(f"hostile names {text[:20]!r}", user_id=str(70000000000000100 + number), user_name=text, file_name=text)
    add("one submission on a second runner", submission_id=traps[0].row["submission_id"], runner="B200")
    _aggregate_duplicates(add)
    pmpp: dict[str, Any] = {
        "file": "pmpp_v2_submissions",
        "problem_name": "sort_v2",
        "leaderboard_id": None,
        "runner": "L4",
    }
    add("user name not UTF-8", user_name=b"jos\xe9", outcome="rejected", reason="BAD_TEXT", **pmpp)
    _tomorrow_traps(add, traps)
    return traps


def _aggregate_duplicates(add: Any) -> None:
    """Rows of one (submission, runner): of equal ones the first is expected kept, of others the rule's choice."""
    one = {"submission_id": 911_000_000, "submission_time": TIME, "code_id": 0}
    add("same submission and runner, equal: one is kept", **one)
    add("same submission and runner, equal: the other", outcome="duplicate", **one)
    two = {"submission_id": 911_000_001}
    add("same submission and runner: a test run gives way", outcome="duplicate", mode="test", score=0.1, **two)
    add("same submission and runner: a failed run gives way", outcome="duplicate", passed=False, score=0.2, **two)
    add("same submission and runner: the higher score gives way", outcome="duplicate", score=0.4, **two)
    add("same submission and runner: the best is kept", score=0.3, **two)
    three = {"submission_id": 911_000_002, "score": 0.3}
    add("same submission, runner and score: status active is first", status="active", **three)
    add("same submission, runner and score: status failed is second", status="failed", outcome="duplicate", **three)


def _tomorrow_traps(add: Any, traps: list[Trap]) -> None:
    file = "tomorrow_submissions"

    def add_here(note: str, submission: str, score: float | None, **more: Any) -> None:
        columns = {"leaderboard_id": 901, "problem_name": "tomorrow_softmax", "runner": "B300"} | more
        time = columns.pop("submission_time", TIME * 1000 + 1_999)
        add(
            note, file=file, submission_id=submission, score=score, user_id=70000000000000007, submission_time=time,
            secret_score=score, **columns,
        )  # fmt: skip
        del traps[-1].row["code_id"]

    for number in range(12):
        add_here("board and file of tomorrow", f"{920_000_000 + number}", 0.002 / (1 + number // 2))
    add_here("id that is no integer", "34y", 0.001, outcome="rejected", reason="BAD_ID")
    add_here(
        "run that an earlier file has", "911000000", 0.5,
        leaderboard_id=597, problem_name="nvfp4_gemm", runner="NVIDIA", outcome="duplicate",
    )  # fmt: skip
