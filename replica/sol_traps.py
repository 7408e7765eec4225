"""The odd answers of SOL-ExecBench, each with what must become of it, and the form of an ordinary submission."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from replica.expectations import SOL_EXECBENCH, Expectation, hostile_text

# Python's dictionaries cannot say a key twice; the text that is written can.
_LATENCY_AGAIN: dict[str, Any] = {"latency_ms again": 9.5}


def submission(definition: dict[str, Any], **values: Any) -> dict[str, Any]:
    """One submission as the API gives it: a correct, ranked one, but for `values`."""
    finished = values.get("submitted_at", "2026-06-01T12:00:00.000")
    return {
        "id": 0,
        "type": "kernel",
        "user_id": 70001,
        "username": "trapper",
        "kernel_id": definition["id"],
        "kernel_name": definition["name"],
        "kernel_title": definition["title"],
        "collection_id": None,
        "collection_submission_id": None,
        "collection_title": None,
        "submission_mode": "release",
        "status": "COMPLETED",
        "is_correct": True,
        "sol_score": 0.5,
        "latency_ms": 2.5,
        "benchmark_results": None,
        "fast_1_count": 1,
        "fast_1_total": 2,
        "avg_speedup": 1.25,
        "gpu_type": "B200",
        "worker_id": "external-prod-b200-1",
        "evaluation_stack_version": "v1.1",
        "is_disqualified": False,
        "disqualification_reason": None,
        "disqualification_source": None,
        "disqualified_at": None,
        "submitted_at": finished,
        "finished_at": finished,
        "error_log": None,
        "original_filename": None,
    } | values


def listing(definition: dict[str, Any], submissions: int) -> dict[str, Any]:
    """A kernel's entry in the answer of `/kernels`."""
    names = ("id", "name", "title", "gpu_types", "tags")
    return {name: definition[name] for name in names} | {"submission_count": submissions}


def page(rows: list[Any], total: int, offset: int = 0) -> dict[str, Any]:
    """A page of submissions; `total` is what the API says there are."""
    return {"submissions": rows, "total": total, "offset": offset, "limit": 50}


def kernel(kernel_id: int, stem: str, **values: Any) -> dict[str, Any]:
    """A small definition with two cases, but for `values`."""
    return {
        "id": kernel_id,
        "name": f"{kernel_id}_{stem}",
        "title": f"{kernel_id}_{stem}",
        "description": stem.replace("_", " "),
        "gpu_types": ["B200"],
        "tags": ["L1", "model:replica-7b", "odd"],
        "axes": {"m": {"type": "var"}, "n": {"type": "const", "value": 64}},
        "inputs": {"x": {"shape": ["m", "n"], "dtype": "bfloat16"}},
        "outputs": {"y": {"shape": ["m", "n"], "dtype": "bfloat16"}},
        "workloads": [workload(m=128), workload(m=256)],
        "baseline_latency_ms": 2.9,
        "sol_is_dummy": False,
        "latency_unit": "ms",
        "reference": None,
    } | values


def workload(
    baseline: float = 3.0, sol: float | None = 1.0, more: dict[str, Any] | None = None, **axes: int
) -> dict[str, Any]:
    """A case of a kernel from `kernel`; `baseline` and `sol` in milliseconds, `more` further fields."""
    return {"axes": {"n": 64} | axes, "baseline_latency_ms": baseline, "sol_ms": sol} | (more or {})


@dataclass
class SolTraps:
    """`listed`: entries for kernels.json; `files`: JSON texts by locator; `expectations` of their rows."""

    listed: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    expectations: list[Expectation] = field(default_factory=list)

    def of(self, locator: str) -> list[Expectation]:
        """The expectations of one answer, in order."""
        return [one for one in self.expectations if one.locator == locator]

    def define(self, definition: dict[str, Any], note: str, reason: str | None = None) -> None:
        """Lists a kernel and writes its definition, which `reason` rejects."""
        locator = f"kernels/{definition['id']}.json"
        self.listed.append(listing(definition, 0))
        self.files[locator] = json.dumps({"data": definition})
        outcome = "rejected" if reason else "kept"
        self.expectations.append(Expectation(SOL_EXECBENCH, locator, "definition", outcome, reason, note=note))

    def answer(self, locator: str, rows: _Page, total: int | None = None, offset: int = 0) -> None:
        """Writes a page of submissions."""
        text = json.dumps({"data": page(rows.rows, len(rows.rows) if total is None else total, offset)})
        self.files[locator] = text.replace('"latency_ms again"', '"latency_ms"')
        for place, values in enumerate(rows.fates):
            self.expectations.append(Expectation(SOL_EXECBENCH, locator, f"submissions/{place}", **values))


class _Page:
    """Submissions of one kernel and what must become of each."""

    def __init__(self, definition: dict[str, Any], first: int) -> None:
        self.definition, self.next = definition, first
        self.rows: list[Any] = []
        self.fates: list[dict[str, Any]] = []

    def add(
        self,
        note: str,
        outcome: str = "kept",
        reason: str | None = None,
        reasons: Sequence[str] = (),
        flags: Sequence[str] = (),
        observed_at: str | None = None,
        **values: Any,
    ) -> dict[str, Any]:
        row = submission(self.definition, **({"id": self.next} | values))
        self.next += 1
        fate: dict[str, Any] = {"outcome": outcome, "reason": reason, "note": note, "flags": list(flags)}
        if outcome == "kept":
            fate |= {
                "run_ids": [f"{SOL_EXECBENCH}:submission/{row['id']}"],
                "eligible": not reasons,
                "reasons": list(reasons),
                "observed_at": observed_at,
            }
        self.rows.append(row)
        self.fates.append(fate)
        return row


def sol_traps() -> SolTraps:
    """Every odd answer, with the kernels that they need (ids from 9001)."""
    traps = SolTraps()
    dummy = kernel(9001, "dummy_bound", sol_is_dummy=True)
    traps.define(dummy, "SOL bound is a dummy")
    traps.answer("submissions/9001.json", _odd_submissions(dummy))
    _pages(traps)
    _odd_definitions(traps)
    _rejected_definitions(traps)
    return traps


def _odd_submissions(definition: dict[str, Any]) -> _Page:
    rows = _Page(definition, 9_000_001)
    nothing: dict[str, Any] = {
        "sol_score": None,
        "latency_ms": None,
        "avg_speedup": None,
        "fast_1_count": None,
        "fast_1_total": None,
    }
    rows.add("ordinary")
    rows.add("under a bound that is a dummy", latency_ms=0.5)
    rows.add("failed", reasons=["NOT_PASSED", "NO_VALUE"], status="FAILED", is_correct=None, **nothing)
    rows.add("failed, with figures", reasons=["NOT_PASSED"], status="FAILED", is_correct=None)
    rows.add("private", reasons=["MODE_PRIVATE"], submission_mode="private")
    rows.add("null mode", reasons=["MODE_UNKNOWN"], submission_mode=None)
    rows.add("disqualified", reasons=["REVOKED"], is_disqualified=True, disqualification_reason="cached outputs")
    rows.add(
        "disqualified and private", reasons=["REVOKED", "MODE_PRIVATE"], is_disqualified=True, submission_mode="private"
    )
    rows.add("not correct", reasons=["NOT_PASSED"], is_correct=False)
    rows.add("correctness null", reasons=["NOT_PASSED"], is_correct=None)
    rows.add("status of tomorrow", reasons=["NOT_PASSED"], status="QUARANTINED")
    rows.add("null status", reasons=["NOT_PASSED"], status=None)
    rows.add("null latency", reasons=["NO_VALUE"], latency_ms=None)
    rows.add("zero latency", reasons=["NO_VALUE"], flags=["OUT_OF_RANGE"], latency_ms=0)
    rows.add("zero latency and score 0.0", reasons=["NO_VALUE"], flags=["OUT_OF_RANGE"], latency_ms=0.0, sol_score=0.0)
    rows.add("negative latency", reasons=["NO_VALUE"], flags=["OUT_OF_RANGE"], latency_ms=-1.5)
    rows.add("latency NaN", reasons=["NO_VALUE"], flags=["NOT_FINITE"], latency_ms=math.nan)
    rows.add("latency Infinity", reasons=["NO_VALUE"], flags=["NOT_FINITE"], latency_ms=math.inf)
    rows.add("score NaN", flags=["NOT_FINITE"], sol_score=math.nan)
    rows.add("score 0, counts 0", sol_score=0, fast_1_count=0, fast_1_total=0, avg_speedup=0)
    rows.add("49 ns", reasons=["BELOW_FLOOR"], latency_ms=0.000049)
    rows.add("100 ns", latency_ms=0.0001, username="hundred", evaluation_stack_version="v1.0")
    rows.add("older stack", evaluation_stack_version="v1.0")
    rows.add("null stack", evaluation_stack_version=None)
    rows.add("unknown GPU", gpu_type="NVIDIA_X900_Ultra")
    rows.add("null GPU", reasons=["NO_ENVIRONMENT"], gpu_type=None)
    rows.add("null user", username=None, user_id=None)
    rows.add("unknown fields", review_state="open", review_notes={"by": ["a", 1, None]}, energy_j=12.5)
    rows.add("null worker", worker_id=None)
    rows.add("no finish", finished_at=None, observed_at="2026-06-01T12:00:00.000Z")
    rows.add("no times", finished_at=None, submitted_at=None)
    rows.add("time of microseconds", finished_at="2026-06-01T12:00:00.999999", observed_at="2026-06-01T12:00:00.999Z")
    rows.add("time without a fraction", finished_at="1969-12-31T23:59:59", observed_at="1969-12-31T23:59:59.000Z")
    rows.add("time that is none", "rejected", "BAD_TIME", finished_at="yesterday", submitted_at="yesterday")
    rows.add("id as text", id="9000900")
    rows.add("id that is no integer", "rejected", "BAD_ID", id="12x")
    rows.add("null id", "rejected", "BAD_ID", id=None)
    rows.add("surrogate alone in the user name", "rejected", "BAD_TEXT", username="half \ud800")
    rows.add("one key twice", "rejected", "DUPLICATE_KEYS", **_LATENCY_AGAIN)
    for text in hostile_text:
        rows.add(f"hostile user name {text[:20]!r}", username=text)
    rows.rows.append("not a submission")
    rows.fates.append({"outcome": "rejected", "reason": "NOT_AN_OBJECT", "note": "text among the submissions"})
    return rows


def _pages(traps: SolTraps) -> None:
    """A bound that counts, a page that overlaps the one before, and more submissions than pages could reach."""
    bounded = kernel(9002, "real_bound")
    traps.define(bounded, "a bound that counts")
    rows = _Page(bounded, 9_100_001)
    rows.add("under the smallest bound", reasons=["BELOW_SOL_BOUND"], latency_ms=0.9)
    rows.add("at the smallest bound", latency_ms=1.0)
    shared = rows.add("on two pages")
    traps.answer("submissions/9002.json", rows, total=137)
    following = _Page(bounded, 9_100_011)
    following.add("on two pages, again", "duplicate", id=shared["id"])
    following.add("on the second page alone")
    traps.answer("submissions/9002.2.json", following, total=137, offset=50)


def _odd_definitions(traps: SolTraps) -> None:
    repeated = [workload(m=128), workload(m=256), workload(3.5, m=128)]
    traps.define(kernel(9003, "repeated_case", workloads=repeated), "a case twice, with another baseline")
    inputs = {
        "x": {"shape": ["m", "n"], "dtype": "bfloat16"},
        "table": {"shape": ["n"], "dtype": "half"},
        "eps": {"shape": None, "dtype": "float32"},
        "step": {"shape": [], "dtype": "int64"},
    }
    described = {
        "inputs": {
            "x": {"type": "random"},
            "table": {"type": "safetensors", "path": "table.safetensors", "tensor_key": "t"},
            "eps": {"type": "scalar", "value": 1e-06},
            "step": {"type": "scalar", "value": 3},
        },
        "tolerance": {"max_atol": 0.001, "max_rtol": 1e-7},
    }
    uuid = "6f1b2c3d-0000-4000-8000-00000000000"
    cases = [workload(m=128 * n, more=described | {"uuid": f"{uuid}{n}"}) for n in (1, 2)]
    cases.append(workload(m=512, more={"tolerance": {"max_atol": 0.5}}))
    traps.define(kernel(9004, "described_inputs", inputs=inputs, workloads=cases), "uuids, descriptors and tolerances")
    axes = {
        "C": {"type": "expr", "expression": "B + A % 7 - 1"},
        "B": {"type": "expr", "expression": "(A * 2) // n"},
        "A": {"type": "expr", "expression": "M + n"},
        "M": {"type": "var"},
        "n": {"type": "const", "value": 64},
    }
    shapes = {"X-in": {"shape": ["M", "C", "128", 4], "dtype": "FLOAT8_E5M2"}, "2nd": {"shape": ["B"], "dtype": "Q4-K"}}
    derived = kernel(
        9005, "derived_axes", axes=axes, inputs=shapes, outputs={"y": shapes["X-in"]}, op_type="Fused Norm"
    )
    traps.define(derived | {"workloads": [workload(M=128), workload(M=256)]}, "derived axes, digit strings, capitals")
    no_bound = [workload(m=128, sol=None), workload(m=256, sol=math.nan), workload(m=512, sol=0.0)]
    unbounded = kernel(
        9006, "cases_without_bound", workloads=no_bound, baseline="def run(x): return x", owner="someone"
    )
    traps.define(unbounded, "cases without a positive bound, unknown fields")
    rows = _Page(unbounded, 9_200_001)
    rows.add("no bound to be under", latency_ms=0.001)
    traps.answer("submissions/9006.json", rows)


def _rejected_definitions(traps: SolTraps) -> None:
    """Kernels that cannot be: rejected ones, one without a definition, one that nobody lists; and their submissions."""
    var, twice = {"type": "var"}, {"shape": ["m"], "dtype": "half"}
    large = {"type": "const", "value": 2**53}
    rejected: list[tuple[str, str, dict[str, Any]]] = [
        ("axes_collide", "NAME_COLLISION", {"axes": {"M": var, "m": var, "n": {"type": "const", "value": 64}}}),
        ("arguments_collide", "NAME_COLLISION", {"inputs": {"a-b": twice, "A_b": twice}}),
        (
            "axis_out_of_range",
            "NUMBER_OUT_OF_RANGE",
            {"axes": {"m": var, "n": large}, "workloads": [workload(m=1, n=2**53)]},
        ),
        ("case_out_of_range", "NUMBER_OUT_OF_RANGE", {"workloads": [workload(m=-(2**53))]}),
        ("expression_of_powers", "BAD_EXPRESSION", {"axes": {"m": var, "n": {"type": "expr", "expression": "m ** 2"}}}),
        ("axis_unknown", "UNBOUND_AXIS", {"inputs": {"x": {"shape": ["m", "elsewhere"], "dtype": "half"}}}),
        ("axes_no_object", "BAD_DEFINITION", {"axes": "none"}),
    ]
    for number, (stem, reason, values) in enumerate(rejected):
        definition = kernel(9011 + number, stem, **values)
        traps.define(definition, stem.replace("_", " "), reason)
        rows = _Page(definition, 9_300_001 + 10 * number)
        rows.add("of a kernel that is rejected", "rejected", "NO_PROBLEM")
        traps.answer(f"submissions/{definition['id']}.json", rows)
    undefined, unlisted = kernel(9021, "without_definition"), kernel(9022, "unlisted")
    traps.listed.append(listing(undefined, 1))
    for definition, note in (
        (undefined, "of a kernel without a definition"),
        (unlisted, "of a kernel that is not listed"),
    ):
        rows = _Page(definition, 9_400_000 + definition["id"])
        rows.add(note, "rejected", "NO_PROBLEM")
        traps.answer(f"submissions/{definition['id']}.json", rows)
