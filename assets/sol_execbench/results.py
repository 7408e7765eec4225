"""Rows of `results` and `submissions`, and the authors and documents that kept submissions name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from assets.sol_execbench.definitions import SOURCE, Kernel
from assets.sol_execbench.environment import environment, hardware, protocol
from assets.sol_execbench.ledger import Columns, Place
from assets.sol_execbench.submissions import FLOOR_NS, RANKED_MODE, Submission
from warehouse.contracts import RESULTS, TABLES
from warehouse.identity import canonical_json, digest, document, kebab

_AUTHOR = f"{SOURCE}:user/"
_VERSION = "submission-"


def result_columns() -> Columns:
    """Columns of `results`, for rows of `result_row`."""
    return Columns(
        RESULTS,
        source=SOURCE,
        case_index=None,
        sample_count=None,
        # The source gives ms; its own figure stays in native_metrics.
        mean_ns=None,
        min_ns=None,
        max_ns=None,
        std_ns=None,
        score_s=None,
    )


def submission_columns() -> Columns:
    """Columns of `submissions`, for rows of `submission_row`."""
    return Columns(
        TABLES["submissions"],
        source=SOURCE,
        score_s=None,
        source_digest=None,
        source_bytes=None,
        code_id=None,
        license_declared="unknown",
        license_concluded="unknown",
    )


def result_row(submission: Submission, kernel: Kernel, place: Place) -> dict[str, Any]:
    """Row of `results` but for its constant columns."""
    label, version, value = submission.gpu_type, submission.version, submission.primary_value
    gpu = None if label is None else hardware(label)
    latency_ms = submission.metrics.get("latency_ms")
    bound = kernel.sol_bound_ms
    implementation = None if label is None else digest(_implementation(kernel, label, submission.id))
    return {
        "run_id": f"{SOURCE}:submission/{submission.id}",
        "submission_key": f"{SOURCE}:{submission.id}",
        "problem": kernel.name,
        "mode": submission.mode,
        "status": submission.status,
        "runner": label,
        "gpu": gpu and gpu.product,
        "architecture": gpu and gpu.architecture,
        "workload_digest": kernel.suite_digest,
        "problem_digest": kernel.problem_digest,
        "implementation_digest": implementation,
        "protocol_digest": protocol(version)["protocol_digest"],
        "environment_digest": None if label is None else environment(label, version)["environment_digest"],
        # The leaderboard publishes no source digest, so nothing can change the implementation's any more.
        "identity": None if implementation is None else "final",
        "primary_metric": None if value is None else "latency",
        "primary_statistic": None if value is None else "mean",
        "primary_unit": None if value is None else "ns",
        "primary_value": value,
        "native_metrics": _metrics(submission.metrics),
        "labels": _given(worker=submission.worker),
        "system": _given(gpu_type=label, worker_id=submission.worker),
        "submission_id": submission.id,
        "version_label": version,
        "correctness_key": kernel.correctness_key,
        "passed": submission.passed,
        "revoked": submission.revoked,
        "leaderboard_mode": submission.mode == RANKED_MODE,
        "below_floor": value is not None and value < FLOOR_NS,
        "below_sol_bound": latency_ms is not None and bound is not None and latency_ms < bound,
        "flags": submission.flags,
        "external_id": f"submission/{submission.id}",
        "observed_at": submission.observed_at,
        "content_digest": place.answer.content_digest,
        "locator": place.answer.locator,
        "item": place.item,
    }


def _metrics(metrics: Mapping[str, int | float]) -> str:
    """Canonical JSON of figures whose names are in order."""
    return "{" + ",".join(f'"{name}":{number_text(value)}' for name, value in metrics.items()) + "}"


def number_text(value: int | float) -> str:
    """Canonical text of a number: Python's own where it has no exponent, for that is as ECMAScript writes it."""
    text = repr(value)
    if "e" in text or value == 0:
        return canonical_json(value)
    return text.removesuffix(".0")


@lru_cache(maxsize=4096)
def _given(**texts: str | None) -> str:
    """Canonical JSON of the texts that are given."""
    return canonical_json({name: text for name, text in texts.items() if text is not None})


def submission_row(submission: Submission, kernel: Kernel) -> dict[str, Any]:
    """Row of `submissions` but for its constant columns."""
    name = submission.author_name
    return {
        "submission_key": f"{SOURCE}:{submission.id}",
        "submission_id": submission.id,
        "problem": kernel.name,
        "author_key": None if name is None else _AUTHOR + name,
        "revision": f"{_VERSION}{submission.id}",
        "submitted_at": submission.submitted_at,
        "file_name": submission.file_name,
        "upstream_status": submission.upstream_status,
    }


def _implementation(kernel: Kernel, label: str, submission_id: int) -> str:
    """Canonical text of a submission's implementation document."""
    head, tail = _implementation_around(kernel.problem_digest, tuple(kernel.dtypes), label)
    return f"{head}{submission_id}{tail}"


@lru_cache(maxsize=4096)
def _implementation_around(problem_digest: str, dtypes: tuple[str, ...], label: str) -> tuple[str, str]:
    """What stands before and after the submission's id: all submissions of a kernel on one GPU share it."""
    gpu = hardware(label)
    support = {"hardwareArchitectures": [gpu.architecture], "productsTested": [gpu.product], "dtypes": list(dtypes)}
    text, _ = document(
        "ImplementationRevision",
        {
            "projectRevision": {"version": _VERSION},
            "operation": {"specDigest": problem_digest},
            "callable": {"language": "unknown"},
            "support": support,
            "licensing": {},
        },
    )
    # Nothing before the version comes from upstream, so the first occurrence is the right one.
    head, mark, tail = text.partition(f'"version":"{_VERSION}')
    return head + mark, tail


def tables_of(results: pa.Table, submissions: pa.Table, kernels: Mapping[int, Kernel]) -> dict[str, pa.Table]:
    """The tables of kept submissions, with the authors, implementations, protocols and environments that they name."""
    authors = Columns(TABLES["authors"], source=SOURCE, stable=True)
    counts = Counter(key for key in submissions["author_key"].to_pylist() if key is not None)
    for key in sorted(counts):
        name = key.removeprefix(_AUTHOR)
        authors.append(
            {
                "author_key": key,
                "author_id": name,
                "author_name": name,
                # A name without a letter or digit would leave no slug.
                "project_slug": f"sol-user-{kebab(name) or digest(name)[7:19]}",
                "project_name": name,
                "submissions": counts[key],
            }
        )
    by_name = {kernel.name: kernel for kernel in kernels.values()}
    implementations = Columns(TABLES["implementations"], language="unknown")
    protocols: dict[str, dict[str, Any]] = {}
    environments: dict[str, dict[str, Any]] = {}
    columns = ("problem", "runner", "version_label", "submission_id", "submission_key", "implementation_digest")
    for name, label, version, identifier, key, implementation in zip(
        *(results[column].to_pylist() for column in columns), strict=True
    ):
        protocols.setdefault(protocol(version)["protocol_digest"], protocol(version))
        if label is None:
            continue
        environments.setdefault(environment(label, version)["environment_digest"], environment(label, version))
        gpu, kernel = hardware(label), by_name[name]
        implementations.append(
            {
                "implementation_digest": implementation,
                "submission_key": key,
                "problem_digest": kernel.problem_digest,
                "architectures": [gpu.architecture],
                "products": [gpu.product],
                "dtypes": kernel.dtypes,
                "document": _implementation(kernel, label, identifier),
            }
        )
    return {
        "results": results,
        "submissions": submissions,
        "authors": authors.table(),
        "implementations": implementations.table(),
        "protocols": _rows("protocols", protocols),
        "environments": _rows("environments", environments),
    }


def _rows(name: str, rows: Mapping[str, dict[str, Any]]) -> pa.Table:
    columns = Columns(TABLES[name])
    for key in sorted(rows):
        columns.append(rows[key])
    return columns.table()
