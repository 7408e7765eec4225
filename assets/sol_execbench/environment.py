"""Hardware, protocol and environment of SOL-ExecBench, and the names shown with its documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from warehouse.identity import canonical_json, document, kebab

HARNESS = "SOL-ExecBench evaluation stack"
COMPARATOR = "sol_execbench_eval"
# What the documents say where a submission names no evaluation stack.
UNKNOWN_VERSION = "unknown"

# Part of every protocol's digest: not a letter may change.
_FAMILY = "sol_execbench_leaderboard"
_NOTES = (
    "Suite-mean latency and SOL-Score as published by the SOL-ExecBench leaderboard. "
    "Comparable only within one definition, GPU type, and evaluation stack version."
)
_REFERENCE = "definition reference implementation"
_TIMER = "harness_reported"

_KNOWN = {
    "B200": ("NVIDIA B200", "sm_100"),
    "NVIDIA_B200": ("NVIDIA B200", "sm_100"),
    "GB200": ("NVIDIA GB200", "sm_100"),
    "H200": ("NVIDIA H200", "sm_90"),
    "H100": ("NVIDIA H100", "sm_90"),
    "NVIDIA_H100": ("NVIDIA H100", "sm_90"),
    "A100": ("NVIDIA A100", "sm_80"),
}


@dataclass(frozen=True)
class Hardware:
    """A GPU: its vendor, product and architecture, and whether its label is one that is known."""

    vendor: str
    product: str
    architecture: str
    known: bool


@lru_cache(maxsize=1024)
def hardware(label: str) -> Hardware:
    """The GPU that a `gpu_type` names; an unknown label is its own product, of unknown architecture."""
    if label in _KNOWN:
        return Hardware("nvidia", *_KNOWN[label], True)
    return Hardware("nvidia", label.replace("_", " "), "unknown", False)


@lru_cache(maxsize=1024)
def protocol(version: str | None) -> dict[str, Any]:
    """Row of `protocols` for an evaluation stack."""
    version = version or UNKNOWN_VERSION
    text, protocol_digest = document(
        "BenchmarkProtocol",
        {
            "harness": {"name": HARNESS, "version": version},
            "measurement": {"timer": _TIMER, "primaryStatistic": "mean"},
            "correctness": {"reference": _REFERENCE, "comparator": COMPARATOR},
            "comparability": {"family": _FAMILY, "notes": _NOTES},
        },
    )
    return {
        "protocol_digest": protocol_digest,
        "harness": HARNESS,
        "version": version,
        "repository": None,
        "timer": _TIMER,
        "primary_statistic": "mean",
        "correctness_reference": _REFERENCE,
        "comparator": COMPARATOR,
        "family": _FAMILY,
        "notes": _NOTES,
        "document": text,
    }


@lru_cache(maxsize=1024)
def environment(label: str, version: str | None) -> dict[str, Any]:
    """Row of `environments` for a GPU under an evaluation stack."""
    gpu = hardware(label)
    software = {"libraries": {"evaluation_stack": version or UNKNOWN_VERSION}}
    machine = {"vendor": gpu.vendor, "product": gpu.product, "architecture": gpu.architecture}
    text, environment_digest = document("ExecutionEnvironment", {"hardware": machine, "software": software})
    return {
        "environment_digest": environment_digest,
        **machine,
        "runner": None,
        "software": canonical_json(software),
        "document": text,
    }


def run_name(submission_id: int) -> str:
    """`metadata.name` of a run's document."""
    return f"sol-submission-{submission_id}"


def run_title(author_name: str | None, kernel: str, label: str | None) -> str:
    """`metadata.title` of a run's document; what the source does not say is left out."""
    return " · ".join(part for part in (author_name, kernel, label) if part)


def protocol_name(version: str | None) -> str:
    """`metadata.name` of a protocol's document."""
    return f"sol-execbench-leaderboard-{kebab(version or UNKNOWN_VERSION)}"


def protocol_title(version: str | None) -> str:
    """`metadata.title` of a protocol's document."""
    return f"{HARNESS} {version or UNKNOWN_VERSION}"


def environment_name(label: str, version: str | None) -> str:
    """`metadata.name` of an environment's document."""
    return f"sol-execbench-{kebab(label)}-{kebab(version or UNKNOWN_VERSION)}"


def environment_title(label: str, version: str | None) -> str:
    """`metadata.title` of an environment's document."""
    return f"SOL-ExecBench {hardware(label).product}, stack {version or UNKNOWN_VERSION}"
