"""The rows of the published tables that the oracle makes, whatever source they are from (see ``oracle``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.oracle import Json, Rejected, comparison_key, correctness_key, document_digest


@dataclass
class Corpus:
    """The rows of the published tables as they grow; JSON columns are objects, times are text."""

    runs: list[Json] = field(default_factory=list)
    cases: list[Json] = field(default_factory=list)
    problems: list[Json] = field(default_factory=list)
    submissions: list[Json] = field(default_factory=list)
    implementations: dict[str, Json] = field(default_factory=dict)
    protocols: dict[str, Json] = field(default_factory=dict)
    environments: dict[str, Json] = field(default_factory=dict)
    rejects: list[Json] = field(default_factory=list)
    conflicts: list[Json] = field(default_factory=list)
    files: dict[str, dict[str, int]] = field(default_factory=dict)
    run_documents: dict[str, Json] = field(default_factory=dict)

    def count(self, locator: str, outcome: str) -> None:
        """Counts one row of a file as ``kept``, ``duplicate`` or ``rejected``."""
        counts = self.files.setdefault(locator, {"read": 0, "kept": 0, "duplicate": 0, "rejected": 0})
        counts["read"] += 1
        counts[outcome] += 1

    def reject(self, source: str, locator: str, item: str, reason: Rejected) -> None:
        row = {"source": source, "locator": locator, "item": item, "reason": reason.reason, "detail": reason.detail}
        self.rejects.append(row)

    def add_submission(self, source: str, submission_id: int, **columns: Json) -> None:
        row = {
            "submission_key": f"{source}:{submission_id}",
            "source": source,
            "submission_id": submission_id,
            "revision": f"submission-{submission_id}",
            "score_s": None,
            "source_digest": None,
            "source_bytes": None,
            "code_id": None,
            "license_declared": "unknown",
            "license_concluded": "unknown",
            **columns,
        }
        self.submissions.append(row)

    def add_problem(self, source: str, problem: str, doc: Json, **columns: Json) -> None:
        row = {
            "source": source,
            "problem": problem,
            "problem_digest": document_digest(doc),
            "ranking_by": None,
            "deadline_at": None,
            "document": doc,
            **columns,
        }
        self.problems.append(row)

    def add_implementation(self, doc: Json, submission_key: str) -> None:
        key, spec = document_digest(doc), doc["spec"]
        self.implementations[key] = {
            "implementation_digest": key,
            "submission_key": submission_key,
            "problem_digest": spec["operation"]["specDigest"],
            "language": spec["callable"]["language"],
            "architectures": spec["support"]["hardwareArchitectures"],
            "products": spec["support"]["productsTested"],
            "dtypes": spec["support"].get("dtypes", []),
            "document": doc,
        }

    def add_protocol(self, doc: Json, metadata: Json) -> None:
        key, spec = document_digest(doc), doc["spec"]
        self.protocols[key] = {
            "protocol_digest": key,
            "harness": spec["harness"]["name"],
            "version": spec["harness"].get("version"),
            "repository": spec["harness"].get("repository"),
            "timer": spec["measurement"]["timer"],
            "primary_statistic": spec["measurement"]["primaryStatistic"],
            "correctness_reference": spec["correctness"]["reference"],
            "comparator": spec["correctness"]["comparator"],
            "family": spec["comparability"]["family"],
            "notes": spec["comparability"]["notes"],
            "document": doc,
            "metadata": metadata,
        }

    def add_environment(self, doc: Json, runner: str | None, metadata: Json) -> None:
        key, machine = document_digest(doc), doc["spec"]["hardware"]
        known = self.environments.get(key)
        # Two labels may give one environment; it shows the name that sorts first.
        if known and known["metadata"]["name"] <= metadata["name"]:
            return
        self.environments[key] = {
            "environment_digest": key,
            "vendor": machine["vendor"],
            "product": machine["product"],
            "architecture": machine["architecture"],
            "runner": runner,
            "software": doc["spec"]["software"],
            "document": doc,
            "metadata": metadata,
        }

    def add_case(self, source: str, problem: str, problem_digest: str, doc: Json, **columns: Json) -> None:
        spec = doc["spec"]
        correctness = columns.pop("correctness")
        row = {
            "source": source,
            "problem": problem,
            "workload_digest": document_digest(doc),
            "occurrence": 0,
            "kind": "suite" if doc["kind"] in ("WorkloadSuite", "Suite") else "case",
            "problem_digest": problem_digest,
            "external_id": None,
            "axes": spec.get("axes"),
            "tensors": spec.get("tensors"),
            "suite_cases": spec.get("cases"),
            "statistic": spec.get("statistic") or spec.get("aggregation", {}).get("statistic"),
            "correctness": correctness,
            "correctness_key": correctness_key(correctness),
            "baseline_latency_ms": None,
            "sol_bound_ms": None,
            "document": doc,
            **columns,
        }
        self.cases.append(row)

    def add_run(
        self,
        *,
        make_document: Callable[[dict[str, Json]], Json] | None,
        documents: dict[str, Json],
        metadata: dict[str, Json],
        correctness: Json,
        metric: tuple[str, str, str],
        ranked_mode: str,
        below: list[str],
        **row: Json,
    ) -> None:
        """One row of ``runs``, and its run document where it has one.

        ``documents``: implementation, workload, protocol, environment, None where there is none. ``below``: what
        the value is too small for. ``make_document`` makes the run document of the four digests.
        """
        digests: dict[str, Json] = {name: doc and document_digest(doc) for name, doc in documents.items()}
        reasons = [] if row["status"] in ("passed", "revoked") else ["NOT_PASSED"]
        reasons += ["REVOKED"] if row["status"] == "revoked" else []
        reasons += [] if row["mode"] == ranked_mode else [mode_reason(row["mode"])]
        reasons += ["NO_VALUE"] if row["primary_value"] is None else []
        reasons += ["NO_ENVIRONMENT"] if row["runner"] is None else []
        has_document = not reasons
        reasons += below
        environment_doc = documents["environment"]
        machine = environment_doc["spec"]["hardware"] if environment_doc else {}
        names = metric if row["primary_value"] is not None else (None, None, None)
        row |= {f"{name}_digest": value for name, value in digests.items()}
        row |= dict(zip(("primary_metric", "primary_statistic", "primary_unit"), names, strict=True))
        row |= {
            "gpu": machine.get("product"),
            "architecture": machine.get("architecture"),
            "run_digest": None,
            "comparison_key": None,
            "eligible": not reasons,
            "ineligible_reasons": reasons,
            "evidence_level": "reported",
        }
        if make_document is not None and has_document:
            doc = make_document(digests)
            row["run_digest"] = document_digest(doc)
            row["comparison_key"] = comparison_key(
                row["problem_digest"],
                digests["workload"],
                digests["protocol"],
                digests["environment"],
                correctness_key(correctness),
                metric,
            )
            self.run_documents[row["run_id"]] = {
                "run": doc | {"metadata": metadata["run"]},
                "protocol": documents["protocol"] | {"metadata": metadata["protocol"]},
                "environment": environment_doc | {"metadata": metadata["environment"]},
            }
        self.runs.append(row)


def no_figures() -> dict[str, Json]:
    """The columns of timings, for a run without any."""
    return dict.fromkeys(("sample_count", "mean_ns", "min_ns", "max_ns", "std_ns"))


def mode_reason(mode: str | None) -> str:
    first = (mode or "").split(".")[0].upper()
    return "MODE_" + (re.sub(r"[^A-Z0-9]", "_", first) or "UNKNOWN")
