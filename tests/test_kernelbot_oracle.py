"""The fast path and the plain one give the same runs for any small folder of KernelBot files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from assets.kernelbot.facts import boards_as_documents
from tests import oracle
from tests.kernelbot_folder import Row, normalised, write

FACTS = {"boards": json.loads(json.dumps(boards_as_documents()))}
JSON_COLUMNS = ("native_metrics", "labels", "system")

FIGURE = st.one_of(
    st.floats(50, 1e7).map(str),
    st.sampled_from(["1000.5", "0", "-1", "nan", "inf", "0.3", "99.4", "99.5", "1e5", "4175913.45", "1e400", None]),
)
LABEL = st.sampled_from(["AMD Instinct MI300X", "MI300", "H100", "NVIDIA", "RTX 5090", "mint", None])
SPEC = st.sampled_from(
    [
        "m: 1024; n: 1536; k: 7168; seed: 8135",
        "M: 1024; N: 1536; K: 7168; SEED: 8135;",
        "m: 64; n: 128; k: 256; seed: 0",
        "size: 4; case: mixed",
        "m: 1; m: 2",
        "m: mixed; n: 1; k: 1; seed: 1",
        "",
        None,
    ]
)
MODE = st.sampled_from(
    ["leaderboard", "leaderboard", "leaderboard", "test", "benchmark", "profile.0", "Odd mode", None]
)
SCORE = st.one_of(
    st.floats(1e-6, 1.0), st.sampled_from([None, 0.0, -1.0, float("nan"), float("inf"), 1e-7, 9.9e-8, 4.6e-25])
)
PASSED = st.sampled_from([True, True, True, False, None])


def submission(submission_id: int) -> Row:
    """What all rows of a submission say alike."""
    return {
        "submission_id": submission_id,
        "file_name": [None, "", "kernel.py", 'odd "\\\x1f name.py'][submission_id % 4],
        "code_id": submission_id * 10,
        "submission_time": None
        if submission_id % 5 == 4
        else datetime(2025, 1, 1) + timedelta(days=submission_id, microseconds=1999),
    }


@st.composite
def case_figures(draw: st.DrawFn) -> Row:
    figures = {name: draw(FIGURE) for name in ("mean", "best", "worst", "std")}
    return {"spec": draw(SPEC), **figures, "runs": draw(st.sampled_from(["3", "1", "0", "2.5", "x", None]))}


@st.composite
def per_case_rows(draw: st.DrawFn) -> Row:
    submission_id = draw(st.integers(1, 4))
    cases = draw(st.lists(case_figures(), max_size=2))
    fields = {f"benchmark.{i}.{name}": value for i, figures in enumerate(cases) for name, value in figures.items()}
    return {
        **submission(submission_id),
        # One board for a submission: known with facts, known without, not known at all.
        "leaderboard_id": {1: 399, 2: 399, 3: 398, 4: 12345}[submission_id],
        "user_id": draw(st.sampled_from([None, 7])) if submission_id == 1 else submission_id,
        "run_id": draw(st.sampled_from([1, 2, 3, None])),
        "run_mode": draw(MODE),
        "run_score": draw(SCORE),
        "run_passed": draw(PASSED),
        "run_result": {**fields, "check": draw(st.sampled_from(["pass", "fail", None]))},
        "run_system_info": {"gpu": draw(LABEL), "torch": draw(st.sampled_from(["2.8", None])), "device_count": 1},
        "run_compilation": {"success": draw(st.sampled_from([True, False, None]))},
        "run_meta": {"success": draw(st.sampled_from([True, False, None]))},
    }


@st.composite
def aggregate_rows(draw: st.DrawFn) -> Row:
    submission_id = draw(st.integers(11, 14))
    return {
        **submission(submission_id),
        "leaderboard_id": {11: 496, 12: 763, 13: 999}.get(submission_id),
        "problem_name": {11: "trimul", 12: "amd-mxfp4-mm", 14: 'new "board"'}.get(submission_id),
        "user_id": "7" if submission_id != 12 else None,
        "user_name": "someone",
        "status": draw(st.sampled_from(["succeeded", "failed", "hacked", "timeout", "active", None])),
        "score": draw(SCORE),
        "passed": draw(PASSED),
        "mode": draw(MODE),
        "runner": draw(LABEL),
    }


PER_CASE_FILES = st.lists(
    st.sampled_from(["submissions", "successful_submissions", "a_new_file"]), unique=True, max_size=2
)
AGGREGATE_FILES = st.lists(st.sampled_from(["trimul_submissions", "zzz"]), unique=True, max_size=2)


@st.composite
def folders(draw: st.DrawFn) -> dict[str, list[Row]]:
    files = {name: draw(st.lists(per_case_rows(), min_size=1, max_size=10)) for name in draw(PER_CASE_FILES)}
    return files | {name: draw(st.lists(aggregate_rows(), min_size=1, max_size=10)) for name in draw(AGGREGATE_FILES)}


def flags(run: Row) -> list[str]:
    """Flags of figures that do not count; only the product tells texts that are no numbers apart, and marks more."""
    return sorted(flag.replace("UNREADABLE:", "NOT_FINITE:") for flag in run["flags"] if ":" in flag)


def of_product(run: Row) -> Row:
    observed = run["observed_at"]
    return (
        run
        | {name: json.loads(run[name]) for name in JSON_COLUMNS}
        | {
            "observed_at": observed and observed.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z",
            "flags": flags(run),
        }
    )


def compared(made: Any, wanted: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, product's and oracle's, of all that both give."""
    runs = {run["run_id"]: of_product(run) for run in made.tables["runs"]}
    expected = {run["run_id"]: run | {"flags": flags(run)} for run in wanted["runs"]}
    yield "runs", sorted(runs), sorted(expected)
    for run_id, run in expected.items():
        common = sorted(run.keys() & runs[run_id].keys())
        yield run_id, {name: runs[run_id][name] for name in common}, {name: run[name] for name in common}
    kinds = [("cases", ("problem", "workload_digest")), ("implementations", ("implementation_digest",))]
    for name, key in kinds:
        used = {row["workload_digest"] for row in wanted["runs"]}
        rows = [row for row in made.tables[name] if name != "cases" or row["workload_digest"] in used]
        yield (
            name,
            {tuple(row[part] for part in key): json.loads(row["document"]) for row in rows},
            {tuple(row[part] for part in key): row["document"] for row in wanted[name]},
        )
    rejects = [(row["locator"], row["item"], row["reason"]) for row in made.tables["rejects"]]
    rejects += [(row["locator"], str(row["item"]), "NO_BOARD") for row in made.boardless]
    yield "rejects", sorted(rejects), sorted((row["locator"], row["item"], row["reason"]) for row in wanted["rejects"])
    counts = {name: (counted["kept"], counted["duplicate"]) for name, counted in wanted["files"].items()}
    yield "counts", made.counts, counts


# A folder takes a third of a second, and making a failing one smaller takes hundreds of them.
@settings(deadline=None, max_examples=12, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(folders().filter(bool))
def test_both_give_the_same_runs_documents_rejects_and_counts(folder: dict[str, list[Row]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for file, rows in folder.items():
            write(root / "kernelbot", file, rows)
        made = normalised(root / "kernelbot", root / "scratch")
        wanted = oracle.read(root, FACTS)
    for what, found, expected in compared(made, wanted):
        assert found == expected, what
