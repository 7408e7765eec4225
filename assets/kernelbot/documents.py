"""KernelBot's documents: what a board, a case, a protocol and an environment are, to the byte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from assets.expressions import ExpressionError, bind_axes, bind_shape, check_integer
from assets.kernelbot.facts import CORRECTNESS, Board
from assets.kernelbot.terms import SOURCE
from warehouse.identity import LOCAL_API_VERSION, MAXIMUM_INTEGER, canonical_json, document, kebab

_HARNESS = {"name": "reference-kernels eval.py", "repository": "https://github.com/gpu-mode/reference-kernels"}
_PROTOCOL_CORRECTNESS = {"reference": "problem reference implementation", "comparator": "kernelbot_eval"}
# The wording of both notes is part of the protocols' digests.
_PER_CASE_NOTES = (
    "Per-case wall-clock statistics as published in the KernelBot dataset. Comparable only within one leaderboard "
    "problem and GPU type; runner software versions ride each run's labels."
)
_AGGREGATE_NOTES = (
    "Aggregate leaderboard score in seconds over the problem's published benchmark suite, as computed by the upstream "
    "ranked run. Comparable only within one leaderboard problem and runner type."
)

_HARDWARE = {
    "AMD Instinct MI300X": ("amd", "AMD Instinct MI300X", "gfx942"),
    "MI300": ("amd", "AMD Instinct MI300X", "gfx942"),
    "AMD Instinct MI325X": ("amd", "AMD Instinct MI325X", "gfx942"),
    "MI355X": ("amd", "AMD Instinct MI355X", "gfx950"),
    "B200": ("nvidia", "NVIDIA B200", "sm_100"),
    "B200_Nebius": ("nvidia", "NVIDIA B200", "sm_100"),
    "NVIDIA": ("nvidia", "NVIDIA B200", "sm_100"),
    "H100": ("nvidia", "NVIDIA H100", "sm_90"),
    "A100": ("nvidia", "NVIDIA A100", "sm_80"),
    "L4": ("nvidia", "NVIDIA L4", "sm_89"),
    "T4": ("nvidia", "NVIDIA T4", "sm_75"),
}


@dataclass(frozen=True)
class Hardware:
    """What a label stands for; `known` is false where that was worked out from the label's form alone."""

    vendor: str
    product: str
    architecture: str
    known: bool


def hardware(label: str) -> Hardware:
    """Vendor, product and architecture of a GPU's or fleet's label."""
    if label in _HARDWARE:
        return Hardware(*_HARDWARE[label], known=True)
    if re.search(r"mi\d", label, re.IGNORECASE | re.ASCII):
        vendor = "amd"
    elif re.match(r"nvidia|rtx|[abhlt]\d", label, re.IGNORECASE | re.ASCII):
        vendor = "nvidia"
    else:
        vendor = "unknown"
    return Hardware(vendor, label, "unknown", known=False)


def environment(label: str, *, aggregate: bool) -> dict[str, Any]:
    """The ExecutionEnvironment's spec; on aggregate boards two fleets with one GPU stay apart."""
    machine = hardware(label)
    stated = {"vendor": machine.vendor, "product": machine.product, "architecture": machine.architecture}
    return {"hardware": {**stated, "formFactor": f"runner:{label}"} if aggregate else stated, "software": {}}


def protocol(statistic: str | None) -> dict[str, Any]:
    """The BenchmarkProtocol's spec: of per-case boards without a statistic, else of aggregate boards."""
    return {
        "harness": _HARNESS,
        "correctness": _PROTOCOL_CORRECTNESS,
        "measurement": {"timer": "wall_clock", "primaryStatistic": statistic or "mean"},
        "comparability": {
            "notes": _AGGREGATE_NOTES if statistic else _PER_CASE_NOTES,
            "family": "gpumode_kernelbot",
        },
    }


def protocol_metadata(statistic: str | None) -> dict[str, str]:
    """Name and title of a protocol."""
    if statistic is None:
        return {"name": "gpumode-kernelbot-eval", "title": "GPU MODE KernelBot evaluation harness"}
    return {
        "name": f"gpumode-kernelbot-leaderboard-{statistic}",
        "title": "GPU MODE KernelBot ranked leaderboard run",
    }


def environment_metadata(label: str, *, aggregate: bool) -> dict[str, str]:
    """Name and title of an environment."""
    product = hardware(label).product
    fleet = f" ({label})" if aggregate and label != product else ""
    return {"name": f"{SOURCE}-{kebab(label)}", "title": f"KernelBot runner · {product}{fleet}"}


def run_metadata(board: str, submission_id: int, case_index: int | None, axes: dict[str, Any] | None) -> dict[str, str]:
    """Name and title of a run: per case with its axes, else of the board's score."""
    if case_index is None:
        return {
            "name": f"kernelbot-{submission_id}-leaderboard",
            "title": f"{board} · submission {submission_id} · leaderboard score",
        }
    words = "-".join(f"{name}{value}" for name, value in sorted((axes or {}).items()))
    return {
        "name": kebab(f"kernelbot-{submission_id}-{words}"),
        "title": f"{board} · submission {submission_id} · case {case_index}",
    }


def parse_spec(spec: str | None) -> dict[str, int | str]:
    """A case's bindings from `name: value; name: value`: names lowercased, whole numbers as integers, all else as text.

    Raises:
        ExpressionError: `SPEC_MISSING`, `SPEC_FORM` (an entry without a colon), `SPEC_COLLISION` or
            `NUMBER_OUT_OF_RANGE`.
    """
    bindings: dict[str, int | str] = {}
    entries = (spec or "").split(";")
    for entry in entries[:-1] if not entries[-1].strip() else entries:
        name, colon, value = entry.partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon or not name:
            raise ExpressionError("SPEC_FORM", f"{entry.strip()[:60]!r} is not of the form 'name: value'")
        if name in bindings:
            raise ExpressionError("SPEC_COLLISION", f"{name[:60]!r} is bound twice")
        bindings[name] = _spec_value(value)
    if not bindings:
        raise ExpressionError("SPEC_MISSING", "the case has no spec")
    return bindings


def _spec_value(value: str) -> int | str:
    # The length is looked at first: Python refuses to read integers of thousands of digits.
    if re.fullmatch(r"-?(0|[1-9][0-9]*)", value, re.ASCII) and len(value) <= 17 and abs(int(value)) <= MAXIMUM_INTEGER:
        return int(value)
    return value


@dataclass(frozen=True)
class Workload:
    """A case of a board: its document with digest, and the columns that `cases` shows of it (JSON text)."""

    digest: str
    document: str
    axes: str
    tensors: str | None


def workload_case(name: str, board: Board | None, spec: str | None) -> Workload:
    """The workload of one case, of a board with facts or (`board` None) without.

    Raises:
        ExpressionError: whose code is the reason why the case is rejected.
    """
    bindings = parse_spec(spec)
    if board is None:
        text, workload_digest = document("Case", {"problem": name, "axes": bindings}, LOCAL_API_VERSION)
        return Workload(workload_digest, text, canonical_json(bindings), None)
    axes: dict[str, int] = {}
    for axis, value in bindings.items():
        if not isinstance(value, int):
            if re.fullmatch(r"-?(0|[1-9][0-9]*)", value, re.ASCII):
                raise ExpressionError("NUMBER_OUT_OF_RANGE", f"axis {axis[:60]!r} is beyond 2^53 - 1")
            raise ExpressionError("SPEC_VALUE", f"axis {axis[:60]!r} is bound to {value[:60]!r}, which is no integer")
        axes[axis] = check_integer(value, f"axis {axis!r}")
    bound = bind_axes(board.axes, axes)
    tensors = {
        argument["name"]: {
            "dtype": argument["tensor"]["dtype"],
            "shape": bind_shape(argument["tensor"]["shape"], bound),
        }
        for argument in board.inputs
    }
    spec_document = {
        "operationSpecDigest": board.problem_digest,
        "axes": axes,
        "tensors": tensors,
        "correctness": CORRECTNESS,
    }
    text, workload_digest = document("WorkloadCase", spec_document)
    return Workload(workload_digest, text, canonical_json(axes), canonical_json(tensors))


def problem_document(name: str, board: Board | None) -> tuple[str, str]:
    """Canonical text and digest of a board's problem document."""
    if board is None:
        return document("Problem", {"source": SOURCE, "problem": name}, LOCAL_API_VERSION)
    return document("OperationSpec", board.operation())


def suite_document(name: str, board: Board | None) -> tuple[str, str]:
    """Canonical text and digest of the suite behind a board's aggregate score."""
    if board is None or board.suite is None:
        return document("Suite", {"problem": name, "statistic": "unspecified"}, LOCAL_API_VERSION)
    return document("WorkloadSuite", board.workload_suite())
