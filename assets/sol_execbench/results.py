"""Rows of kept submissions, and the authors, protocols and environments that they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assets.sol_execbench.definitions import Kernel
from assets.sol_execbench.environment import environment, hardware, protocol
from assets.sol_execbench.ledger import Place
from assets.sol_execbench.submissions import FLOOR_NS, RANKED_MODE, Submission
from assets.sol_execbench.tables import Columns
from assets.sol_execbench.terms import SOURCE
from warehouse.contracts import TABLES
from warehouse.identity import canonical_json, digest, document, kebab

_AUTHOR = f"{SOURCE}:user/"
_VERSION = "submission-"


def result_row(
    submission: Submission, kernel: Kernel, place: Place, implementation_digest: str | None
) -> dict[str, Any]:
    """Row of `results` but for its constant columns."""
    label, version, value = submission.gpu_type, submission.version, submission.primary_value
    gpu = None if label is None else hardware(label)
    latency_ms = submission.metrics.get("latency_ms")
    bound = kernel.sol_bound_ms
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
        "implementation_digest": implementation_digest,
        "protocol_digest": protocol(version)["protocol_digest"],
        "environment_digest": None if label is None else environment(label, version)["environment_digest"],
        # The leaderboard publishes no source digest, so nothing can change the implementation's any more.
        "identity": None if implementation_digest is None else "final",
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
    return "{" + ",".join([f'"{name}":{number_text(value)}' for name, value in metrics.items()]) + "}"


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


def implementation_row(submission: Submission, kernel: Kernel) -> dict[str, Any] | None:
    """Row of `implementations` but for its constant columns; None where no hardware is named."""
    if submission.gpu_type is None:
        return None
    gpu, text = hardware(submission.gpu_type), _implementation(kernel, submission.gpu_type, submission.id)
    return {
        "implementation_digest": digest(text),
        "submission_key": f"{SOURCE}:{submission.id}",
        "problem_digest": kernel.problem_digest,
        "architectures": [gpu.architecture],
        "products": [gpu.product],
        "dtypes": kernel.dtypes,
        "document": text,
    }


def shared_tables(
    author_keys: pa.ChunkedArray, runners: pa.ChunkedArray, versions: pa.ChunkedArray
) -> dict[str, pa.Table]:
    """What kernels have in common: authors, protocols and environments.

    Args:
        author_keys: of all kept submissions, with nulls.
        runners, versions: of all kept results, side by side, with nulls.
    """
    authors = Columns(TABLES["authors"], source=SOURCE, stable=True)
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(author_keys).to_pylist()}
    counts.pop(None, None)
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
    pairs = pa.table({"runner": runners, "version": versions}).group_by(["runner", "version"]).aggregate([]).to_pylist()
    protocols = [protocol(pair["version"]) for pair in pairs]
    environments = [environment(pair["runner"], pair["version"]) for pair in pairs if pair["runner"] is not None]
    return {
        "authors": authors.table(),
        "protocols": _distinct("protocols", "protocol_digest", protocols),
        "environments": _distinct("environments", "environment_digest", environments),
    }


def _distinct(name: str, key: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    columns = Columns(TABLES[name])
    for _, row in sorted({row[key]: row for row in rows}.items()):
        columns.append(row)
    return columns.table()
