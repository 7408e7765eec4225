"""The odd rows of KernelBot's per-case files, each with what must become of it: as many at every scale."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from replica.expectations import KERNELBOT, Expectation, hostile_text
from replica.kernelbot_schemas import hex_text, struct

# A spec of amd-mixture-of-experts; seed and sequence length are open.
MIXTURE = (
    "bs: 1; seed: {}; seqlen: {}; dexpert: 2048; dhidden: 7168; nroutedexperts: 32; nsharedexperts: 1; "
    "nexpertspertoken: 4"
)
_SPEC = MIXTURE.format(1, 2048)  # a case of its own, so that odd figures stay out of the ordinary cohorts
TIME = 1_767_225_600_123_000  # 2026-01-01T00:00:00.123Z in microseconds
_YEAR_12000 = 316_516_636_800_000_000
_GPU = "AMD Instinct MI300X"

# Submission 29858 of amd-mixture-of-experts, whose case 0 is a published record.
PUBLISHED_ROW: dict[str, Any] = {
    "submission_id": 29858,
    "leaderboard_id": 430,
    "user_id": 0,
    "submission_time": 1_748_769_074_635_000,
    "file_name": "moe_v4_clean.py",
    "run_id": 5001,
    "run_mode": "leaderboard",
    "run_score": 0.0073761345439469495,
    "run_passed": True,
    "run_result": {
        "benchmark-count": "2",
        "benchmark.0.spec": MIXTURE.format(9371, 2048),
        "benchmark.0.runs": "20",
        "benchmark.0.mean": "4175913.45",
        "benchmark.0.std": "59575.79732838796",
        "benchmark.0.err": "13321.553264002583",
        "benchmark.0.best": "4057360.0",
        "benchmark.0.worst": "4287644.0",
        "benchmark.1.spec": MIXTURE.format(1212, 8192),
        "benchmark.1.runs": "20",
        "benchmark.1.mean": "13028852.6",
        "benchmark.1.std": "117025.62426301073",
        "benchmark.1.err": "26167.72509614407",
        "benchmark.1.best": "12899110.0",
        "benchmark.1.worst": "13269565.0",
    },
    "run_system_info": {
        "gpu": _GPU,
        "platform": "Linux-5.15.0-136-generic-x86_64-with-glibc2.35",
        "torch": "2.8.0.dev20250530+rocm6.3",
    },
}
PUBLISHED_EXPECTATION = Expectation(
    KERNELBOT,
    "submissions.parquet",
    "0",
    "kept",
    run_ids=[f"{KERNELBOT}:submission/29858/run/5001/benchmark/{n}" for n in range(2)],
    eligible=True,
    reasons=[],
    observed_at="2025-06-01T09:11:14.635Z",
    note="the published record",
)

# Files of tomorrow: ids as text, other string, time and struct types, columns that are new, missing or all null.
_WORD = pa.dictionary(pa.int32(), pa.string())
ODD_FILES: dict[str, pa.Schema] = {
    "community_submissions": pa.schema(
        [
            ("submission_id", pa.large_string()),
            ("leaderboard_id", pa.string()),
            ("user_id", pa.string()),
            ("submission_time", pa.timestamp("ns", "UTC")),
            ("file_name", _WORD),
            ("code", pa.large_binary()),
            ("code_id", pa.null()),
            ("run_mode", _WORD),
            ("run_score", pa.float64()),
            ("run_passed", pa.bool_()),
            (
                "run_result",
                pa.struct(
                    [("benchmark-count", pa.string())]
                    + [
                        (f"benchmark.0.{name}", pa.string())
                        for name in ("spec", "runs", "mean", "best", "worst", "p99")
                    ]
                ),
            ),
            ("run_system_info", struct(gpu=pa.string(), driver=pa.string())),
        ]
    ),
    "tomorrow_submissions": pa.schema(
        [
            ("submission_id", pa.string()),
            ("leaderboard_id", pa.int32()),
            ("problem_name", pa.string()),
            ("user_id", pa.int64()),
            ("user_name", pa.string()),
            ("file_name", pa.string()),
            ("submission_time", pa.timestamp("ns")),
            ("status", _WORD),
            ("score", pa.float64()),
            ("passed", pa.bool_()),
            ("mode", pa.string()),
            ("runner", _WORD),
            ("secret_score", pa.float64()),
            ("code", pa.null()),
        ]
    ),
}


@dataclass(frozen=True)
class Trap:
    """A row of `file` (its name without .parquet) and what must become of it; no `reasons` means eligible."""

    file: str
    row: dict[str, Any]
    note: str
    outcome: str = "kept"
    reason: str | None = None
    run_ids: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    rejected_cases: dict[int, str] = field(default_factory=dict)
    observed_at: str | None = None

    def expectations(self, locator: str, item: int) -> list[Expectation]:
        """That of the row, then those of its rejected cases. `item`: the row's number in the file."""
        kept = self.outcome == "kept"
        row = Expectation(
            KERNELBOT,
            locator,
            str(item),
            self.outcome,
            self.reason,
            run_ids=self.run_ids if kept else None,
            eligible=not self.reasons if kept else None,
            reasons=self.reasons if kept else None,
            flags=self.flags,
            observed_at=self.observed_at,
            note=self.note,
        )
        cases = [
            Expectation(KERNELBOT, locator, f"{item}/benchmark/{n}", "rejected", reason, note=self.note)
            for n, reason in self.rejected_cases.items()
        ]
        return [row, *cases]


def case(mean: str | None = "9000000.0", spec: str | None = _SPEC, **figures: str | None) -> dict[str, str | None]:
    """The figures of one benchmark; None leaves one out."""
    usual = {"runs": "20", "best": "8900000.0", "worst": "9100000.0", "std": "30000.5", "err": "6708.3"}
    return {"spec": spec, "mean": mean, **usual, **figures}


def run_result(cases: Sequence[dict[str, str | None]]) -> dict[str, str]:
    """`run_result` of a benchmark run with these cases."""
    fields = {f"benchmark.{n}.{name}": text for n, one in enumerate(cases) for name, text in one.items()}
    return {"benchmark-count": str(len(cases))} | {name: text for name, text in fields.items() if text is not None}


def content_digest(row: dict[str, Any]) -> str:
    """Hex SHA-256 of what a per-case run says: canonical JSON of run_passed, run_score and run_result.

    Its numbers are scores from 0.0001 to 1, which Python and ECMAScript write alike.
    """
    said = {name: row[name] for name in ("run_passed", "run_score", "run_result") if row.get(name) is not None}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class _PerCase:
    """Collects odd rows of a per-case file; every row is ordinary but for what its call says."""

    def __init__(self, file: str, first: int) -> None:
        self.file, self.next, self.traps = file, first, list[Trap]()

    def add(
        self,
        note: str,
        cases: Sequence[dict[str, str | None]] | None = (case(),),
        *,
        outcome: str = "kept",
        reason: str | None = None,
        reasons: Sequence[str] = (),
        flags: Sequence[str] = (),
        rejected_cases: dict[int, str] | None = None,
        observed_at: str | None = None,
        **columns: Any,
    ) -> dict[str, Any]:
        number = self.next
        self.next += 1
        row: dict[str, Any] = {
            "submission_id": 900_000_000 + number,
            "leaderboard_id": 430,
            "user_id": 7,
            "submission_time": TIME + number * 1_000_000,
            "file_name": "submission.py",
            "code_id": number,
            "run_id": 800_000_000 + number,
            "run_mode": "leaderboard",
            "run_score": None if cases is None else _score(cases),
            "run_passed": True,
            "run_result": None if cases is None else run_result(cases),
            "run_system_info": {"gpu": _GPU, "torch": "2.8.0", "platform": "Linux"},
            **columns,
        }
        rejected = rejected_cases or {}
        run = row["run_id"] if row.get("run_id") is not None else f"{row['run_mode']}-{content_digest(row)[:12]}"
        name = f"{KERNELBOT}:submission/{row['submission_id']}/run/{run}"
        run_ids = [f"{name}/benchmark/{n}" for n in range(len(cases or ())) if n not in rejected]
        trap = Trap(
            self.file, row, note, outcome, reason, run_ids or [name], list(reasons), list(flags), rejected, observed_at
        )
        self.traps.append(trap)
        return row


def _score(cases: Sequence[dict[str, str | None]]) -> float | None:
    try:
        return math.exp(math.fsum(math.log(float(one["mean"] or "nan") / 1e9) for one in cases) / len(cases))
    except ValueError:
        return None


def per_case_traps() -> list[Trap]:
    """Every odd row of the per-case files, in the order in which each file has them at its end."""
    submissions = _PerCase("submissions", 0)
    _odd_columns(submissions)
    _odd_figures(submissions)
    _odd_specs(submissions)
    shared = _same_runs(submissions)
    return [*submissions.traps, *_subset_traps(shared), *_community_traps(shared)]


def _odd_columns(rows: _PerCase) -> None:
    rows.add("null score", run_score=None)
    rows.add("null mode", run_mode=None, reasons=["MODE_UNKNOWN"])
    rows.add("null passed", run_passed=None, reasons=["NOT_PASSED"])
    rows.add("no machine", run_system_info=None, reasons=["NO_ENVIRONMENT"])
    rows.add("null GPU label", run_system_info={"torch": "2.8.0"}, reasons=["NO_ENVIRONMENT"])
    rows.add("null author", user_id=None)
    rows.add("null board", leaderboard_id=None, outcome="rejected", reason="NO_BOARD")
    rows.add("null submission id", submission_id=None, outcome="rejected", reason="BAD_ID")
    rows.add("board that leaderboards.parquet lacks", leaderboard_id=999)
    rows.add("board without facts", leaderboard_id=398, cases=[case(spec="size: 1024; seed: 5")])
    for mode in ("test", "benchmark", "profile.0", "profile.12"):
        code = f"MODE_{mode.partition('.')[0].upper()}"
        rows.add(f"mode {mode} without cases", None, run_mode=mode, reasons=[code, "NO_VALUE"])
    rows.add("mode benchmark", run_mode="benchmark", run_score=None, reasons=["MODE_BENCHMARK"])
    rows.add("mode of tomorrow", run_mode="Warm-Up.3", reasons=["MODE_WARM_UP"])
    rows.add("failed without cases", None, run_passed=False, reasons=["NOT_PASSED", "NO_VALUE"])
    rows.add("passed without cases", None, reasons=["NO_VALUE"])
    rows.add("failed with figures", run_passed=False, reasons=["NOT_PASSED"])
    tests = {"check": "pass", "test-count": "1", "test.0.spec": "m: 64", "test.0.status": "pass"}
    rows.add("test run", None, run_mode="test", run_result=tests, reasons=["MODE_TEST", "NO_VALUE"])
    for label in ("AMD Instinct MI400X", "Gaudi 3", "RTX 4090", "NVIDIA GH200", hostile_text[1], hostile_text[6]):
        rows.add(f"unknown GPU label {label!r}", run_system_info={"gpu": label})
    rows.add("null time", submission_time=None)
    rows.add("before 1970", submission_time=-1, observed_at="1969-12-31T23:59:59.999Z")
    rows.add("below a millisecond", submission_time=TIME + 999, observed_at="2026-01-01T00:00:00.123Z")
    rows.add("year 12000", submission_time=_YEAR_12000, outcome="rejected", reason="BAD_TIME")
    rows.add("null file name", file_name=None)
    rows.add("empty file name", file_name="")
    for text in hostile_text:
        rows.add(f"hostile file name {text[:20]!r}", file_name=text)
    rows.add("file name not UTF-8", file_name=b"caf\xe9.py", outcome="rejected", reason="BAD_TEXT")
    rows.add("hostile output", run_meta={"stdout": hostile_text[6], "stderr": hostile_text[2], "success": True})
    rows.add("code as text, CRLF", code="import torch\r\n# é\r\n")
    rows.add("empty code", code="")
    rows.add("code as text that is not UTF-8", code=b"# caf\xe9\n")


def _odd_figures(rows: _PerCase) -> None:
    for score in (math.nan, math.inf, -math.inf):
        rows.add(f"score {score}", run_score=score, flags=["NOT_FINITE"])
    for score in (-1.5, 0.0):
        rows.add(f"score {score}", run_score=score, flags=["OUT_OF_RANGE"])
    rows.add("score 4.6e-25 beside ordinary cases", run_score=4.6e-25, flags=["SCORE_MISMATCH"])
    for text in ("nan", "inf", "-inf", "1e300"):
        rows.add(f"mean {text}", [case(text)], run_score=None, reasons=["NO_VALUE"], flags=["NOT_FINITE"])
    for text in ("-5.0", "0", "0.0"):
        rows.add(f"mean {text}", [case(text)], run_score=None, reasons=["NO_VALUE"], flags=["OUT_OF_RANGE"])
    rows.add("mean absent", [case(None)], run_score=None, reasons=["NO_VALUE"])
    rows.add("rounds to 99 ns", [case("99.4", best="99.0", worst="99.9")], reasons=["BELOW_FLOOR"])
    rows.add("rounds to 100 ns", [case("99.5", best="99.0", worst="100.0")])
    rows.add("std 0", [case(std="0")])
    rows.add("std absent", [case(std=None, err=None)])
    rows.add("std nan", [case(std="nan", err="nan")], flags=["NOT_FINITE"])
    rows.add("std negative", [case(std="-1.0")], flags=["OUT_OF_RANGE"])
    rows.add("runs 1", [case(runs="1", std="0", err="0.0")])
    rows.add("runs 0", [case(runs="0")], flags=["OUT_OF_RANGE"])
    rows.add("runs absent", [case(runs=None)])
    rows.add("best and worst absent", [case(best=None, worst=None)])
    rows.add("worst inf", [case(worst="inf")], flags=["NOT_FINITE"])
    rows.add("mean below best", [case(best="9500000.0", worst="9600000.0")], flags=["MEAN_OUTSIDE_RANGE"])


def _odd_specs(rows: _PerCase) -> None:
    on_facts = [
        ("word", _SPEC.replace("bs: 1", "bs: mixed"), "SPEC_VALUE"),
        ("boolean", _SPEC.replace("bs: 1", "bs: True"), "SPEC_VALUE"),
        ("list", _SPEC.replace("bs: 1", "bs: [80, 176, 128]"), "SPEC_VALUE"),
        ("empty value", _SPEC.replace("bs: 1", "bs: "), "SPEC_VALUE"),
        ("leading zero", _SPEC.replace("bs: 1", "bs: 01"), "SPEC_VALUE"),
        ("decimal", _SPEC.replace("bs: 1", "bs: 1.0"), "SPEC_VALUE"),
        ("no colon", _SPEC.replace("bs: 1", "bs 1"), "SPEC_FORM"),
        ("names that collide", _SPEC + "; BS: 2", "SPEC_COLLISION"),
        ("2^53", _SPEC.replace("bs: 1", "bs: 9007199254740992"), "NUMBER_OUT_OF_RANGE"),
        ("axis missing", _SPEC.replace("seqlen: 2048; ", ""), "UNBOUND_AXIS"),
        ("empty", "", "SPEC_MISSING"),
        ("null", None, "SPEC_MISSING"),
    ]
    for what, spec, code in on_facts:
        cases = [case(), case(spec=spec), case(spec=MIXTURE.format(2, 2048))]
        rows.add(f"spec on a board with facts: {what}", cases, rejected_cases={1: code})
    only = [case(spec=_SPEC.replace("bs: 1", "bs: mixed"))]
    rows.add("only case is rejected", only, rejected_cases={0: "SPEC_VALUE"}, reasons=["NO_VALUE"])
    rows.add("spec with capitals, spaces and a last semicolon", [case(spec=" " + _SPEC.replace("bs:", "BS :") + ";")])
    free = [
        "case: mixed", "flag: True", "m: [80, 176, 128]", "m: ", "m: 007; k: 1e5", "path: a:b", "M: 3",
        "big: 9007199254740992", "name: " + hostile_text[0], "name: " + hostile_text[5], "größe: ½", "m: -0",
    ]  # fmt: skip
    for spec in free:
        rows.add(f"spec on a board without facts: {spec[:30]!r}", [case(spec=spec)], leaderboard_id=563)
    for what, spec, code in on_facts[6:8] + on_facts[10:]:
        cases = [case(spec="m: 1"), case(spec=spec)]
        rows.add(f"spec on a board without facts: {what}", cases, leaderboard_id=563, rejected_cases={1: code})


def _same_runs(rows: _PerCase) -> dict[str, dict[str, Any]]:
    """Rows that are one run, and rows that other files have as well."""
    first = rows.add("same submission and run, equal: one is kept", submission_time=TIME)
    rows.add("same submission and run, equal: the other", outcome="duplicate", **first)
    slower, faster = [case("9200000.0", worst="9300000.0")], [case("8800000.0", best="8700000.0")]
    digests = [
        content_digest({"run_passed": True, "run_score": _score(cases), "run_result": run_result(cases)})
        for cases in (slower, faster)
    ]
    same: dict[str, Any] = {"submission_id": 900_000_900, "run_id": 800_000_900}
    for cases, digest in zip((slower, faster), digests, strict=True):
        outcome = "kept" if digest == min(digests) else "duplicate"
        rows.add("same submission and run, differing: the first by content is kept", cases, outcome=outcome, **same)
    nameless = rows.add("no run id", run_id=None)
    rows.add("no run id, equal content", outcome="duplicate", **nameless)
    rows.add("no run id, other content", slower, submission_id=nameless["submission_id"], run_id=None)
    several = rows.add("one submission, its first run")
    rows.add("one submission, its second run", faster, submission_id=several["submission_id"])
    return {"first": first, "nameless": nameless, "several": several}


def _subset_traps(shared: dict[str, dict[str, Any]]) -> list[Trap]:
    successful = _PerCase("successful_submissions", 300)
    first = {name: value for name, value in shared["first"].items() if name != "user_id"}
    successful.add("run that submissions has", outcome="duplicate", user_id=91, **first)
    successful.add(
        "run that submissions has, with another score", outcome="duplicate", **(first | {"run_score": 0.5}), user_id=91
    )
    successful.add("no run id, content that submissions has", outcome="duplicate", **shared["nameless"])
    successful.add("run that submissions lacks", submission_id=first["submission_id"], code=b"# caf\xe9 \xff\x00\n")
    older = _PerCase("deduplicated_submissions", 400)
    older.add("row that no other file has", code=hex_text("import torch\r\n"))
    older.add("hex of bytes that are no text", code=hex_text(b"\xff\xfe"))
    older.add("board that no other file has", leaderboard_id=998, cases=[case(spec="m: 1")])
    oldest = _PerCase("deduplicated_successful_submissions", 500)
    oldest.add("row that no other file has")
    return [*successful.traps, *older.traps, *oldest.traps]


def _community_traps(shared: dict[str, dict[str, Any]]) -> list[Trap]:
    rows = _PerCase("community_submissions", 600)
    spec = "m: 64; kind: causal"

    def add(note: str, submission: str, spec: str = spec, board: str = "997", **more: Any) -> None:
        one = case(spec=spec, std=None, err=None, p99="9050000.0")
        time = more.pop("submission_time", TIME * 1000)
        rows.add(
            note, [one], submission_id=submission, leaderboard_id=board, user_id="u-7", submission_time=time,
            code_id=None, run_id=None, run_system_info={"gpu": _GPU, "driver": "6.4.1"}, **more,
        )  # fmt: skip

    add("id as text, board of tomorrow, no run ids", "900000601", code=b"import torch\n")
    add("id that is no integer", "12x", outcome="rejected", reason="BAD_ID")
    add("a nanosecond before 1970", "900000603", submission_time=-1, observed_at="1969-12-31T23:59:59.999Z")
    add("nanoseconds", "900000604", submission_time=TIME * 1000 + 999_999, observed_at="2026-01-01T00:00:00.123Z")
    add("submission and board that submissions has, no run id", str(shared["several"]["submission_id"]), _SPEC, "430")
    for trap in rows.traps:
        del trap.row["run_id"]  # the file has no such column
    return rows.traps
