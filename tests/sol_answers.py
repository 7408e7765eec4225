"""Small hand-made answers of SOL-ExecBench, and the tables of them with what must always hold checked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow.compute as pc
import rfc8785

from assets.sol_execbench.normalise import normalise
from assets.sol_execbench.read import Answer
from warehouse.contracts import RESULTS, TABLES

FETCHED_AT = datetime(2026, 11, 30, 3, 0, 0, tzinfo=UTC)
MADE = {
    "problems",
    "cases",
    "submissions",
    "authors",
    "implementations",
    "protocols",
    "environments",
    "rejects",
    "drift",
    "source_files",
    "results",
}


def listed(kernel_id: Any, **changes: Any) -> dict[str, Any]:
    return {"id": kernel_id, "name": f"00{kernel_id}_copy", "submission_count": 0, **changes}


def definition(kernel_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": kernel_id,
        "name": f"00{kernel_id}_copy",
        "tags": ["mlp"],
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "workloads": [{"axes": {"n": kernel_id}, "baseline_latency_ms": 2.0, "sol_ms": 0.5}],
        "sol_is_dummy": False,
        **changes,
    }


def submission(identifier: Any, kernel_id: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "kernel_id": kernel_id,
        "username": "solver",
        "submission_mode": "release",
        "status": "COMPLETED",
        "is_correct": True,
        "is_disqualified": False,
        "sol_score": 0.75,
        "latency_ms": 1.0,
        "avg_speedup": 2.0,
        "fast_1_count": 1,
        "fast_1_total": 1,
        "gpu_type": "B200",
        "worker_id": "worker-1",
        "evaluation_stack_version": "v1.1",
        "submitted_at": "2026-07-01T10:00:00",
        "finished_at": "2026-07-01T10:00:05.123456",
        "original_filename": None,
        **changes,
    }


def answer(locator: str, data: Any) -> Answer:
    return Answer.of(locator, json.dumps({"data": data}).encode())


def corpus(
    kernels: Iterable[Any] = (),
    definitions: Iterable[dict[str, Any]] = (),
    pages: dict[str, list[Any]] | None = None,
    total: int | None = None,
) -> list[Answer]:
    answers = [answer("kernels.json", {"kernels": list(kernels)})]
    answers += [answer(f"kernels/{one['id']}.json", one) for one in definitions]
    for name, rows in (pages or {}).items():
        count = len(rows) if total is None else total
        answers.append(answer(f"submissions/{name}.json", {"submissions": rows, "total": count}))
    return answers


def one_kernel(*rows: Any) -> list[Answer]:
    """Kernel 1 with one page of submissions."""
    return corpus([listed(1)], [definition(1)], {"1": list(rows)})


def made_of(answers: Iterable[Answer]) -> dict[str, list[dict[str, Any]]]:
    """All tables as rows, with what must always hold checked: schemas, keys, nulls, conservation."""
    tables = normalise(answers, FETCHED_AT, None)
    assert tables.keys() == MADE
    for name, table in tables.items():
        contract = RESULTS if name == "results" else TABLES[name]
        assert table.schema.equals(contract.arrow_schema(), check_metadata=True)
        for column in contract.columns:
            assert column.nullable or table[column.name].null_count == 0, (name, column.name)
        keys = [tuple(row[key] for key in contract.key) for row in table.select(contract.key).to_pylist()]
        assert len(keys) == len(set(keys)), name
        for json_column in {"document", "native_metrics", "labels", "system", "raw", "axes", "tensors"} & set(
            contract.names
        ):
            for text in table[json_column].drop_null().to_pylist():
                assert rfc8785.dumps(json.loads(text)).decode() == text
    files = tables["source_files"]
    parts = pc.add(pc.add(files["rows_kept"], files["rows_duplicate"]), files["rows_rejected"])
    assert files["rows_read"].equals(parts)
    assert (pc.sum(files["rows_rejected"]).as_py() or 0) == tables["rejects"].num_rows
    return {name: table.to_pylist() for name, table in tables.items()}


def counts(tables: dict[str, list[dict[str, Any]]]) -> dict[str, tuple[int, int, int, int]]:
    return {
        row["locator"]: tuple(row[f"rows_{part}"] for part in ("read", "kept", "duplicate", "rejected"))
        for row in tables["source_files"]
    }


def drift(tables: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, str, str]]:
    return [(row["locator"], row["field"], row["kind"], row["detail"]) for row in tables["drift"]]


def rejects(tables: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, str]]:
    return [(row["locator"], row["item"], row["reason"]) for row in tables["rejects"]]
