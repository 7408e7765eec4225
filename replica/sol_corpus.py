"""The SOL-ExecBench half of the corpus as JSON: a listing, definitions, pages of submissions and some leaderboards."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from replica import sol_traps
from replica.expectations import SOL_EXECBENCH, Corpus, Expectation, FileCounts
from replica.sol_leaderboards import leaderboards

KERNELS = 235
_PAGE = 50

# Kernels of published records keep their ids and names; the definitions are made up.
_PUBLISHED_KERNELS = {
    9: "009_expert_token_scatter_with_weighted_forward_backward",
    174: "080_moe_complete_layer_with_shared_expert_backward",
}
_PUBLISHED_SUBMISSIONS: dict[int, dict[str, Any]] = {
    9: {
        "id": 4273,
        "sol_score": 0.918888,
        "latency_ms": 0.317881,
        "avg_speedup": 8.017,
        "fast_1_count": 16,
        "fast_1_total": 16,
        "worker_id": "B200-ext-prod-2264",
        "evaluation_stack_version": "v1.0",
        "submitted_at": "2026-05-27T05:56:21.957",
        "finished_at": "2026-05-27T05:56:21.957",
    },
    174: {
        "id": 6683,
        "sol_score": 0.734476,
        "latency_ms": 0.143901,
        "avg_speedup": 2.338,
        "fast_1_count": 16,
        "fast_1_total": 16,
        "worker_id": "B200-ext-prod-2527",
        "evaluation_stack_version": "v1.0",
        "submitted_at": "2026-06-07T06:16:48.116",
        "finished_at": "2026-06-07T06:16:48.116",
    },
}


def tensor(shape: list[Any] | None, dtype: str = "bfloat16") -> dict[str, Any]:
    """An argument as a definition declares it; without a shape it is a scalar."""
    return {"shape": shape, "dtype": dtype}


# Stem of the name -> tag, axes, inputs, outputs. Expressions come before what they need in some of them, as upstream.
_FORMS: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "linear_bias_gelu": (
        "mlp",
        {
            "tokens": {"type": "var"},
            "hidden": {"type": "const", "value": 4096},
            "wide": {"type": "const", "value": 11008},
        },
        {"x": tensor(["tokens", "hidden"]), "weight": tensor(["wide", "hidden"]), "bias": tensor(["wide"])},
        {"y": tensor(["tokens", "wide"])},
    ),
    "rmsnorm_residual_backward": (
        "normalization",
        {"batch": {"type": "var"}, "seq_len": {"type": "var"}, "hidden": {"type": "const", "value": 2048}},
        {
            "grad_output": tensor(["batch", "seq_len", "hidden"], "float32"),
            "residual": tensor(["batch", "seq_len", "hidden"], "float16"),
            "eps": tensor(None, "float32"),
        },
        {"grad_input": tensor(["batch", "seq_len", "hidden"], "float32")},
    ),
    "grouped_query_attention": (
        "attention",
        {
            "rows": {"type": "expr", "expression": "batch * heads"},
            "batch": {"type": "var"},
            "seq_len": {"type": "var"},
            "heads": {"type": "const", "value": 32},
            "head_dim": {"type": "expr", "expression": "model_dim // heads"},
            "model_dim": {"type": "const", "value": 4096},
        },
        {
            "query": tensor(["rows", "seq_len", "head_dim"]),
            "key": tensor(["rows", "seq_len", "head_dim"]),
            "value": tensor(["rows", "seq_len", "head_dim"]),
            "mask": tensor(["seq_len", "seq_len"], "bool"),
        },
        {"output": tensor(["rows", "seq_len", "head_dim"])},
    ),
    "expert_router_topk": (
        "moe",
        {"tokens": {"type": "var"}, "experts": {"type": "const", "value": 128}, "top_k": {"type": "const", "value": 8}},
        {"logits": tensor(["tokens", "experts"], "float32"), "training": tensor([], "bool")},
        {"weights": tensor(["tokens", "top_k"], "float32"), "indices": tensor(["tokens", "top_k"], "int64")},
    ),
    "fp8_blockwise_matmul": (
        "gemm",
        {
            "m": {"type": "var"},
            "n": {"type": "const", "value": 7168},
            "k": {"type": "const", "value": 2048},
            "k_blocks": {"type": "expr", "expression": "(k + 127) // 128"},
        },
        {
            "a": tensor(["m", "k"], "float8_e4m3fn"),
            "b": tensor(["n", "k"], "float8_e4m3fn"),
            "a_scale": tensor(["m", "k_blocks"], "float32"),
        },
        {"c": tensor(["m", "n"])},
    ),
}


def write_sol_execbench(corpus: Corpus) -> None:
    """Writes `<folder>/sol_execbench/**.json` and records what must come out of it."""
    folder = corpus.folder / "sol_execbench"
    for part in ("kernels", "submissions", "leaderboards"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    count = max(8, round(KERNELS * corpus.scale))
    ids = sorted({*_PUBLISHED_KERNELS, *[n for n in range(1, count + 1) if n not in _PUBLISHED_KERNELS][: count - 2]})
    listed: list[dict[str, Any]] = []
    ranked: dict[int, list[dict[str, Any]]] = {}
    solvers = [f"solver-{Random(f'{corpus.seed}/{n}').randrange(16**8):08x}" for n in range(40 + count)]
    for kernel_id in ids:
        chance = Random(f"{corpus.seed}/sol/{kernel_id}")
        definition = _definition(chance, kernel_id)
        submissions = _submissions(chance, definition, solvers)
        ranked[kernel_id] = [row for row in submissions if _is_ranked(row)]
        listed.append(sol_traps.listing(definition, len(submissions)))
        _write(folder / f"kernels/{kernel_id}.json", {"data": definition})
        corpus.count(SOL_EXECBENCH, f"kernels/{kernel_id}.json", FileCounts(rows_kept=1))
        for page in range(0, max(1, len(submissions)), _PAGE):
            name = f"submissions/{kernel_id}.json" if not page else f"submissions/{kernel_id}.{1 + page // _PAGE}.json"
            rows = submissions[page : page + _PAGE]
            _write(folder / name, {"data": sol_traps.page(rows, total=len(submissions), offset=page)})
            counts = FileCounts(len(rows), 0, 0, len(rows), sum(_is_ranked(row) for row in rows))
            corpus.count(SOL_EXECBENCH, name, counts)
            corpus.expectations.extend(
                _published(name, place, row)
                for place, row in enumerate(rows)
                if row["id"] == _PUBLISHED_SUBMISSIONS.get(kernel_id, {}).get("id")
            )
    for locator, data in leaderboards(ranked, traps=corpus.traps).items():
        _write(folder / locator, {"data": data})
        corpus.count(SOL_EXECBENCH, locator, FileCounts())
    expectations: list[Expectation] = []
    ordinary = len(listed)
    if corpus.traps:
        odd = sol_traps.sol_traps()
        for place, entry in enumerate(odd.listed, start=ordinary):
            expectations.append(
                Expectation(
                    SOL_EXECBENCH, "kernels.json", f"kernels/{place}", "kept", note=f"listing of {entry['name']}"
                )
            )
        listed.extend(odd.listed)
        for locator, text in odd.files.items():
            (folder / locator).write_text(text, encoding="utf-8")
            corpus.count(SOL_EXECBENCH, locator, FileCounts(), odd.of(locator))
    _write(folder / "kernels.json", {"data": {"kernels": listed}})
    corpus.count(SOL_EXECBENCH, "kernels.json", FileCounts(rows_kept=ordinary), expectations)


def _write(path: Path, answer: dict[str, Any]) -> None:
    path.write_text(json.dumps(answer, indent=1, ensure_ascii=False), encoding="utf-8")


def _is_ranked(row: dict[str, Any]) -> bool:
    passed = row["status"] == "COMPLETED" and row["is_correct"] and not row["is_disqualified"]
    return bool(passed and row["submission_mode"] == "release")


def _published(locator: str, place: int, row: dict[str, Any]) -> Expectation:
    return Expectation(
        SOL_EXECBENCH,
        locator,
        f"submissions/{place}",
        "kept",
        run_ids=[f"{SOL_EXECBENCH}:submission/{row['id']}"],
        eligible=True,
        reasons=[],
        observed_at=row["finished_at"] + "Z",
        note="a published record",
    )


def _definition(chance: Random, kernel_id: int) -> dict[str, Any]:
    stem = "expert_router_topk" if kernel_id in _PUBLISHED_KERNELS else list(_FORMS)[kernel_id % len(_FORMS)]
    tag, axes, inputs, outputs = _FORMS[stem]
    name = _PUBLISHED_KERNELS.get(kernel_id, f"{kernel_id:03}_{stem}")
    workloads: list[dict[str, Any]] = []
    for number in range(16 if kernel_id in _PUBLISHED_KERNELS else chance.choice((12, 14, 16, 16, 16, 25, 38))):
        bound = {
            axis: role["value"] if role["type"] == "const" else 64 * (number + 1) + (number % 3) * (axis != "tokens")
            for axis, role in sorted(axes.items())
            if role["type"] != "expr"
        }
        sol = round(0.008 * (1 + number) * chance.uniform(0.8, 1.2), 4)
        workloads.append({"axes": bound, "baseline_latency_ms": round(sol * chance.uniform(6, 12), 6), "sol_ms": sol})
    return {
        "id": kernel_id,
        "name": name,
        "title": name,
        "description": f"A made-up {tag} kernel.",
        "gpu_types": ["B200"],
        "tags": [tag, "L1" if kernel_id % 2 else "L2", "model:replica-7b"],
        "axes": axes,
        "inputs": inputs,
        "outputs": outputs,
        "workloads": workloads,
        "baseline_latency_ms": round(min(case["baseline_latency_ms"] for case in workloads) * 0.9, 6),
        "sol_is_dummy": False,
        "latency_unit": "ms",
        "reference": None,
    }


def _submissions(chance: Random, definition: dict[str, Any], solvers: list[str]) -> list[dict[str, Any]]:
    """Newest first; each solver improves over time, some runs fail, some tie."""
    cases = definition["workloads"]
    speed: dict[str, float] = {}
    rows: list[dict[str, Any]] = []
    time = datetime(2026, 4, 1, tzinfo=UTC) + timedelta(hours=chance.uniform(0, 48))
    count = 100 if chance.random() < 0.15 else chance.randrange(3, 80)
    for number in range(count):
        solver = solvers[int(len(solvers) * chance.random() ** 2)]
        time += timedelta(milliseconds=chance.randrange(60_000, 10**8))
        faster = speed.get(solver, chance.uniform(0.6, 3)) * chance.uniform(0.99, 1.2)
        if rows and chance.random() < 0.05 and rows[-1]["latency_ms"]:
            faster = rows[-1]["avg_speedup"]
        faster = speed[solver] = round(min(faster, 5.5), 4)
        values: dict[str, Any] = {
            "id": 100_000 + definition["id"] * 1_000 + number,
            "username": solver,
            "submitted_at": time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}",
            "evaluation_stack_version": "v1.1" if number > count // 3 else "v1.0",
            "worker_id": f"external-prod-b200-{number % 4}",
            **_figures(cases, faster),
        }
        fate = chance.random()
        if fate < 0.1:
            values |= _NO_FIGURES | {
                "status": "FAILED",
                "is_correct": None,
                "error_log": "RuntimeError: launch failure",
            }
        elif fate < 0.14:
            values |= _NO_FIGURES | {"is_correct": False, "error_log": "outputs differ"}
        elif fate < 0.17:
            values |= {"submission_mode": "private"}
        elif fate < 0.18:
            values |= {"is_disqualified": True, "disqualification_reason": "reads the expected output"}
        rows.append(sol_traps.submission(definition, **values))
    if published := _PUBLISHED_SUBMISSIONS.get(definition["id"]):
        rows[0] = sol_traps.submission(definition, username=solvers[0], **published)
    return sorted(rows, key=lambda row: (row["submitted_at"], row["id"]), reverse=True)


_NO_FIGURES: dict[str, Any] = {
    "sol_score": None,
    "latency_ms": None,
    "avg_speedup": None,
    "fast_1_count": None,
    "fast_1_total": None,
}


def _figures(cases: list[dict[str, Any]], faster: float) -> dict[str, Any]:
    """What the suite reports when every case runs `faster` times its baseline's speed."""
    pairs = [(case["baseline_latency_ms"], case["sol_ms"]) for case in cases]
    scores = [1 / (1 + (base / faster - sol) / (base - sol)) for base, sol in pairs]
    return {
        "sol_score": round(math.fsum(scores) / len(cases), 6),
        "latency_ms": round(math.exp(math.fsum(math.log(base / faster) for base, _ in pairs) / len(cases)), 6),
        "avg_speedup": faster,
        "fast_1_count": len(cases) if faster > 1 else 0,
        "fast_1_total": len(cases),
    }
