"""SOL-ExecBench's part of the oracle: saved answers of the leaderboard, and their documents (see ``oracle``)."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

from tests.oracle import (
    LATENCY,
    Hardware,
    Json,
    Rejected,
    bound_shape,
    document,
    document_digest,
    evaluate,
    figures,
    implementation,
    in_range,
    input_dtypes,
    instant,
    integer_id,
    kebab,
    moment,
    number,
    positive,
    present,
    rounded,
    run_document,
    sha256,
    text_of,
)
from tests.oracle_tables import Corpus, no_figures

SOURCE = "sol-execbench"
SUITE_CORRECTNESS = {
    "comparator": "sol_execbench_eval",
    "description": "Correctness must pass on every case in the SOL evaluation stack.",
}
DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float4_e2m1": "fp4_e2m1",
}
ARCHITECTURES = {"B200": "sm_100", "GB200": "sm_100", "H200": "sm_90", "H100": "sm_90", "A100": "sm_80"}
STATUSES = {
    "FAILED": "failed",
    "INCORRECT": "incorrect",
    "COMPILE_ERROR": "compile_error",
    "RUNTIME_ERROR": "runtime_error",
    "TIMEOUT": "timeout",
}


def hardware(name: str) -> Hardware:
    short = name.removeprefix("NVIDIA_") if name in ("NVIDIA_B200", "NVIDIA_H100") else name
    if short in ARCHITECTURES:
        return Hardware("nvidia", f"NVIDIA {short}", ARCHITECTURES[short])
    return Hardware("nvidia", name.replace("_", " "), "unknown")


# --- definitions ----------------------------------------------------------------------------------------------


def argument_name(name: str) -> str:
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return plain if re.match(r"[a-z]", plain) else "x_" + plain


def dtype(name: Json) -> str:
    if not isinstance(name, str):
        raise Rejected("BAD_DEFINITION", "dtype")
    return DTYPES.get(name) or re.sub(r"[^a-z0-9_]", "_", name.lower())


def family(definition: Json) -> str:
    given = definition.get("op_type")
    if isinstance(given, str) and kebab(given):
        return kebab(given)
    skipped = ("L1", "L2", "Quant", "FlashInfer-Bench")
    for tag in tags(definition):
        if tag not in skipped and not tag.startswith("model:"):
            return kebab(tag) or "uncategorized"
    return "uncategorized"


def tags(definition: Json) -> list[str]:
    given = definition.get("tags") or []
    if not isinstance(given, list) or not all(isinstance(tag, str) for tag in given):
        raise Rejected("BAD_DEFINITION", "tags")
    return given


def integer(value: Json, what: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, float) and not value.is_integer() and number(value) is None:
        raise Rejected("NUMBER_OUT_OF_RANGE", what)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Rejected("BAD_DEFINITION", what)
    return in_range(value, what)


def lowered(names: Json) -> dict[str, Json]:
    """The same object with lowercased names."""
    result = {name.lower(): value for name, value in as_object(names, "axes").items()}
    if len(result) != len(names):
        raise Rejected("NAME_COLLISION", ", ".join(names))
    return result


def as_object(value: Json, what: str) -> Json:
    if not isinstance(value, dict):
        raise Rejected("BAD_DEFINITION", what)
    return value


def axis(name: str, declared: Json) -> Json:
    kind = as_object(declared, name).get("type")
    if kind == "var":
        return {"role": "variable", "type": "integer"}
    if kind == "const":
        return {"role": "constant", "type": "integer", "value": integer(declared.get("value"), name)}
    if kind == "expr" and isinstance(declared.get("expression"), str):
        expression = declared["expression"].lower()
        check_expression(expression)
        return {"role": "derived", "type": "integer", "expression": expression}
    raise Rejected("BAD_DEFINITION", f"axis {name}")


def check_expression(expression: str) -> None:
    """Refuses an expression of another form; that a value cannot be computed shows only in a case."""
    try:
        evaluate(expression, lambda _: 1)
    except Rejected as reason:
        if not isinstance(reason.__cause__, ZeroDivisionError):
            raise


def shape_entry(entry: Json) -> int | str:
    if isinstance(entry, str) and not re.fullmatch(r"[0-9]+", entry):
        return entry.lower()
    return integer(int(entry.lstrip("0")[:18] or "0") if isinstance(entry, str) else entry, "shape")


def arguments(declared: Json) -> list[Json]:
    """The inputs or outputs of an operation, in upstream order."""
    result = []
    for name, one in as_object(declared, "arguments").items():
        shape = as_object(one, name).get("shape")
        if not isinstance(shape, list | None):
            raise Rejected("BAD_DEFINITION", f"shape of {name}")
        kind = {"dtype": dtype(one.get("dtype"))}
        typed = {"tensor": {"shape": [shape_entry(entry) for entry in shape], **kind}} if shape else {"scalar": kind}
        result.append({"name": argument_name(name), **typed})
    if len({entry["name"] for entry in result}) != len(result):
        raise Rejected("NAME_COLLISION", ", ".join(declared))
    return result


def operation(definition: Json) -> Json:
    """OperationSpec of a kernel's definition."""
    spec = {
        "family": family(definition),
        "axes": {name: axis(name, declared) for name, declared in lowered(definition.get("axes")).items()},
        "inputs": arguments(definition.get("inputs")),
        "outputs": arguments(definition.get("outputs")),
        "semantics": {"mutation": "none", "determinism": "unspecified"},
    }
    reference = definition.get("reference")
    if isinstance(reference, str) and reference:
        spec["reference"] = {"language": "python"}
    return document("OperationSpec", spec)


def case_axes(workload: Json) -> dict[str, int]:
    return {name: integer(value, name) for name, value in lowered(as_object(workload, "workload").get("axes")).items()}


def collation(name: str) -> list[tuple[int, str]]:
    """Order of axis names: ``_``, then other signs, digits, letters; case ignored."""
    return [(0 if c == "_" else 3 if c.isalpha() else 2 if c.isdigit() else 1, c.lower()) for c in name]


def case_id(workload: Json) -> str:
    uuid = workload.get("uuid")
    if isinstance(uuid, str) and uuid:
        return uuid
    axes = workload["axes"]
    ordered = {name: integer(axes[name], name) for name in sorted(axes, key=collation)}
    return sha256(json.dumps(ordered, separators=(",", ":"), ensure_ascii=False))[7:19]


def case_correctness(workload: Json) -> Json:
    correctness: dict[str, Json] = {"comparator": "sol_execbench_eval"}
    tolerance = workload.get("tolerance") or {}
    for name, field in (("max_atol", "maxAbsoluteError"), ("max_rtol", "maxRelativeError")):
        given = as_object(tolerance, "tolerance").get(name)
        if given is not None:
            correctness[field] = usable_number(given, name)
    return correctness


def usable_number(value: Json, what: str) -> int | float:
    if not is_numeric(value):
        raise Rejected("BAD_DEFINITION", what)
    usable = number(value)
    if usable is None:
        raise Rejected("NUMBER_OUT_OF_RANGE", what)
    return usable


def is_numeric(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def workload_case(definition: Json, workload: Json) -> Json:
    """WorkloadCase of one of a kernel's cases."""
    operation_doc = operation(definition)
    spec = operation_doc["spec"]
    axes = case_axes(workload)
    described = workload.get("inputs") or {}
    tensors: dict[str, Json] = {}
    scalars: dict[str, Json] = {}
    for upstream_name, entry in zip(definition["inputs"], spec["inputs"], strict=True):
        descriptor = as_object(described, "inputs of a case").get(upstream_name)
        kind = descriptor.get("type") if isinstance(descriptor, dict) else None
        if kind == "scalar" and is_numeric(descriptor.get("value")):
            value = usable_number(descriptor["value"], upstream_name)
            scalars[entry["name"]] = {"dtype": (entry.get("tensor") or entry["scalar"])["dtype"], "value": value}
        elif "tensor" in entry:
            tensor = entry["tensor"]
            shape = bound_shape(tensor["shape"], spec["axes"], axes)
            tensors[entry["name"]] = {"dtype": tensor["dtype"], "shape": shape}
            if isinstance(descriptor, dict):
                generator = "safetensors" if kind == "safetensors" else "random"
                tensors[entry["name"]]["data"] = {"generator": generator}
    return document(
        "WorkloadCase",
        {
            "operationSpecDigest": document_digest(operation_doc),
            "axes": axes,
            "tensors": tensors,
            **({"scalars": scalars} if scalars else {}),
            "correctness": case_correctness(workload),
        },
    )


def workload_suite(definition: Json) -> Json:
    return document(
        "WorkloadSuite",
        {
            "operationSpecDigest": document_digest(operation(definition)),
            "cases": [{"externalId": case_id(one), "axes": case_axes(one)} for one in definition["workloads"]],
            "correctness": SUITE_CORRECTNESS,
            "aggregation": {"metric": "latency", "statistic": "mean"},
        },
    )


def sol_bound_ms(definition: Json) -> float | None:
    """The smallest latency that is plausible; None where the kernel states no whole bound."""
    bounds = [number(one.get("sol_ms")) if is_numeric(one.get("sol_ms")) else None for one in definition["workloads"]]
    whole = [bound for bound in bounds if bound is not None and bound > 0]
    if definition.get("sol_is_dummy") or not bounds or len(whole) < len(bounds):
        return None
    return min(whole)


@dataclass
class Kernel:
    """A kernel whose definition holds."""

    definition: Json
    problem: str
    problem_digest: str
    dtypes: list[str]
    suite: Json
    bound_ms: float | None


def protocol(version: str) -> Json:
    notes = (
        "Suite-mean latency and SOL-Score as published by the SOL-ExecBench leaderboard. Comparable only within one "
        "definition, GPU type, and evaluation stack version."
    )
    return document(
        "BenchmarkProtocol",
        {
            "harness": {"name": "SOL-ExecBench evaluation stack", "version": version},
            "correctness": {"reference": "definition reference implementation", "comparator": "sol_execbench_eval"},
            "measurement": {"timer": "harness_reported", "primaryStatistic": "mean"},
            "comparability": {"notes": notes, "family": "sol_execbench_leaderboard"},
        },
    )


def environment(name: str, version: str) -> Json:
    software = {"libraries": {"evaluation_stack": version}}
    return document("ExecutionEnvironment", {"hardware": vars(hardware(name)), "software": software})


def run_document_sol(
    digests: dict[str, str], metrics: Json, kernel_name: str, submission_id: int, observed_at: str | None
) -> Json:
    """BenchmarkRun. ``metrics``: the figures of the submission that count."""
    latency_ns = rounded(metrics["latency_ms"] * 1e6)
    measured = {"timing": {"primaryStatistic": "mean", "latencyNs": {"mean": latency_ns}}}
    native = {"source": SOURCE, "benchmark": kernel_name, "externalId": str(submission_id), "metrics": metrics}
    return run_document(digests, measured, native, observed_at)


# --- reading --------------------------------------------------------------------------------------------------


class Twice(dict[str, Json]):
    """An object of JSON in which a name stands twice."""


def unpaired(pairs: list[tuple[str, Json]]) -> Json:
    result = dict(pairs)
    return result if len(result) == len(pairs) else Twice(result)


def answer(path: Path) -> Json:
    """What an answer says under ``data``."""
    return json.loads(path.read_bytes(), object_pairs_hook=unpaired)["data"]


def check_form(value: Json) -> None:
    """Refuses what is no object, has a name twice, or holds text that has no UTF-8 form."""
    if not isinstance(value, dict):
        raise Rejected("NOT_AN_OBJECT")
    if has_twice(value):
        raise Rejected("DUPLICATE_KEYS")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Rejected("BAD_TEXT") from error


def has_twice(value: Json) -> bool:
    if isinstance(value, Twice):
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return any(has_twice(part) for part in parts)


def answer_order(path: Path) -> tuple[Json, ...]:
    """By the numbers in a file's name."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in path.name.split("."))


def add_kernel(definition: Json, names: set[str], corpus: Corpus) -> Kernel:
    check_form(definition)
    name = definition.get("name")
    if not isinstance(name, str) or not name or not isinstance(definition.get("workloads"), list):
        raise Rejected("BAD_DEFINITION")
    if name in names:
        raise Rejected("NAME_TAKEN", name)
    operation_doc = operation(definition)
    spec, problem_digest = operation_doc["spec"], document_digest(operation_doc)
    cases = [(workload_case(definition, one), one) for one in definition["workloads"]]
    suite = workload_suite(definition)
    dtypes = input_dtypes(spec["inputs"])
    seen: list[str] = []
    for doc, workload in cases:
        seen.append(document_digest(doc))
        corpus.add_case(
            SOURCE,
            name,
            problem_digest,
            doc,
            dtypes=dtypes,
            correctness=doc["spec"]["correctness"],
            occurrence=seen.count(seen[-1]) - 1,
            external_id=case_id(workload),
            baseline_latency_ms=number(workload.get("baseline_latency_ms")),
            sol_bound_ms=number(workload.get("sol_ms")),
        )
    corpus.add_case(SOURCE, name, problem_digest, suite, dtypes=dtypes, correctness=SUITE_CORRECTNESS)
    title = re.sub(r"^[0-9]+_", "", name).replace("_", " ")
    corpus.add_problem(
        SOURCE,
        name,
        operation_doc,
        slug=kebab(name),
        family=spec["family"],
        title=title[:1].upper() + title[1:],
        scoring="suite",
        axes=spec["axes"],
        inputs=spec["inputs"],
        outputs=spec["outputs"],
        tags=tags(definition),
        curated=True,
        upstream_id=text_of(definition.get("id")),
    )
    return Kernel(definition, name, problem_digest, dtypes, suite, sol_bound_ms(definition))


def status_of(submission: Json) -> str:
    if submission.get("is_disqualified") is True:
        return "revoked"
    if submission.get("status") == "COMPLETED":
        return {True: "passed", False: "incorrect"}.get(submission.get("is_correct"), "unknown")
    return STATUSES.get(submission.get("status"), "unknown")


def add_submission(submission: Json, kernel: Kernel, corpus: Corpus, **origin: str) -> None:
    """The rows of one submission of a kernel."""
    submission_id = integer_id(submission["id"])
    key = f"{SOURCE}:{submission_id}"
    user, label = text_of(submission.get("username")), text_of(submission.get("gpu_type"))
    author_key = f"{SOURCE}:user/{user}" if user else None
    version = text_of(submission.get("evaluation_stack_version")) or "unknown"
    submitted_at, finished_at = moment(submission.get("submitted_at")), moment(submission.get("finished_at"))
    observed_at = instant(finished_at or submitted_at)
    worker = text_of(submission.get("worker_id"))
    labels = present({"worker": worker})
    metrics, flags = metrics_of(submission)
    latency_ms = metrics.get("latency_ms")
    value = None if latency_ms is None else rounded(latency_ms * 1e6)
    if latency_ms is not None and value is None:
        flags.append("NOT_FINITE:latency_ms")
    below = ["BELOW_FLOOR"] if value is not None and value < 100 else []
    if latency_ms is not None and kernel.bound_ms is not None and latency_ms < kernel.bound_ms:
        below.append("BELOW_SOL_BOUND")
    protocol_doc = protocol(version)
    names = {
        "run": {
            "name": f"sol-submission-{submission_id}",
            "title": f"{user or 'unknown'} · {kernel.problem} · {label}",
        },
        "protocol": {
            "name": f"sol-execbench-leaderboard-{kebab(version)}",
            "title": f"SOL-ExecBench evaluation stack {version}",
        },
    }
    if labels:
        names["run"]["labels"] = labels
    corpus.add_protocol(protocol_doc, names["protocol"])
    implementation_doc = environment_doc = None
    if label is not None:
        machine = hardware(label)
        implementation_doc = implementation(
            submission_id, kernel.problem_digest, "unknown", machine, kernel.dtypes, None
        )
        corpus.add_implementation(implementation_doc, key)
        environment_doc = environment(label, version)
        names["environment"] = {
            "name": f"sol-execbench-{kebab(label)}-{kebab(version)}",
            "title": f"SOL-ExecBench {machine.product}, stack {version}",
        }
        corpus.add_environment(environment_doc, None, names["environment"])
    corpus.add_submission(
        SOURCE,
        submission_id,
        problem=kernel.problem,
        author_key=author_key,
        submitted_at=instant(submitted_at),
        file_name=text_of(submission.get("original_filename")),
        upstream_status=text_of(submission.get("status")),
    )
    corpus.add_run(
        make_document=lambda digests: run_document_sol(digests, metrics, kernel.problem, submission_id, observed_at),
        documents={
            "implementation": implementation_doc,
            "workload": kernel.suite,
            "protocol": protocol_doc,
            "environment": environment_doc,
        },
        metadata=names,
        correctness=SUITE_CORRECTNESS,
        metric=LATENCY,
        ranked_mode="release",
        below=below,
        run_id=f"{SOURCE}:submission/{submission_id}",
        external_id=f"submission/{submission_id}",
        source=SOURCE,
        submission_key=key,
        submission_id=submission_id,
        author_key=author_key,
        problem=kernel.problem,
        problem_digest=kernel.problem_digest,
        mode=text_of(submission.get("submission_mode")),
        status=status_of(submission),
        runner=label,
        case_index=None,
        identity="final" if implementation_doc else None,
        primary_value=value,
        **no_figures(),
        native_metrics=metrics,
        labels=labels,
        system=present({"gpu_type": label, "worker_id": worker}),
        flags=flags,
        observed_at=observed_at,
        **origin,
    )


def metrics_of(submission: Json) -> tuple[dict[str, int | float], list[str]]:
    rules = dict.fromkeys(("sol_score", "avg_speedup", "fast_1_count", "fast_1_total"), lambda _: True)
    # A text is no number here, whatever it says.
    given = {name: value for name, value in submission.items() if value is not None}
    numeric = {name: value if is_numeric(value) else math.nan for name, value in given.items()}
    return figures(numeric, {"latency_ms": positive, **rules})


def read(folder: Path, corpus: Corpus) -> None:
    """Adds all that the saved answers of a folder give."""
    listing = folder / "kernels.json"
    for _ in answer(listing)["kernels"] if listing.exists() else []:
        corpus.count(listing.name, "kept")
    kernels: dict[str, Kernel] = {}
    for path in sorted((folder / "kernels").glob("*.json"), key=answer_order):
        try:
            names = {kernel.problem for kernel in kernels.values()}
            kernels[path.stem] = add_kernel(answer(path), names, corpus)
            corpus.count(f"kernels/{path.name}", "kept")
        except Rejected as reason:
            corpus.reject(SOURCE, f"kernels/{path.name}", "data", reason)
            corpus.count(f"kernels/{path.name}", "rejected")
    found: dict[int, list[tuple[str, str, str, Json, Kernel]]] = {}
    for path in sorted((folder / "submissions").glob("*.json"), key=answer_order):
        locator, content_digest = f"submissions/{path.name}", sha256(path.read_bytes())
        for index, submission in enumerate(answer(path)["submissions"]):
            item = f"data/submissions/{index}"
            try:
                check_form(submission)
                submission_id = integer_id(submission.get("id"))
                moment(submission.get("submitted_at"))
                moment(submission.get("finished_at"))
                kernel_id = text_of(submission.get("kernel_id")) or path.name.split(".")[0]
                if kernel_id not in kernels:
                    raise Rejected("NO_PROBLEM", kernel_id)
                row = (locator, item, content_digest, submission, kernels[kernel_id])
                found.setdefault(submission_id, []).append(row)
            except Rejected as reason:
                corpus.reject(SOURCE, locator, item, reason)
                corpus.count(locator, "rejected")
    for same in found.values():
        # Pages overlap when a submission arrives between two requests.
        kept = min(same, key=lambda row: sha256(json.dumps(row[3], sort_keys=True)))
        for row in same:
            corpus.count(row[0], "kept" if row is kept else "duplicate")
        locator, item, content_digest, submission, kernel = kept
        add_submission(submission, kernel, corpus, locator=locator, item=item, content_digest=content_digest)
