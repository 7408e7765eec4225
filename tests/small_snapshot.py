"""A published snapshot of a dozen runs whose places are plain to see, two of them with published digests.

Board `amd-mixture-of-experts`, case 0, on one GPU; authors' bests are marked with a star:

    rank 1   4109150 ns   submission 30702   user 302 *   2 June 2025
    rank 2   4175913 ns   submission 29858   user 302     1 June 2025   (published)
    rank 3   4233229 ns   submission 30900   user 44 *    3 June 2025
    rank 3   4233229 ns   submission 20000   HOSTILE *    2 May 2025
    rank 4   9000000 ns   submission 10000   user 44      1 May 2025

Besides: the second case of submission 29858, an incorrect run, one run of SOL-ExecBench (published) and one of
submission 29858 of its, three fleets of an aggregate board, and a problem without runs that has a hostile name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assets.kernelbot import documents as kernelbot
from assets.kernelbot.facts import boards_as_documents
from assets.ranks import rank
from assets.sol_execbench import environment as sol
from tests.tables import Row, arrow, warehouse
from warehouse import drafts, snapshots
from warehouse.contracts import TABLES
from warehouse.home import Home
from warehouse.identity import canonical_json, correctness_key, digest, document
from warehouse.statements import statement

BOARD = "amd-mixture-of-experts"
KERNEL = "080_moe_complete_layer_with_shared_expert_backward"
PUBLISHED = "sha256:039bd61d3cb43b7c6b778e496eb34d7e47c9ac68e383436e45570e69e6a96e20"
PUBLISHED_KEY = "sha256:a11fec553fc287b0baf255d7808ad7b5ca334bf96037da7c95e7d06be8737948"
PUBLISHED_SOL = "sha256:c61f8cd5ac43d94099a10751c5f8dd4151fdb82a459dc957d43121b7bc6a5336"
HOSTILE = "\x1b[31mred\x1b[0m \u202e[bold]right\u202c \x9b2J\nnext" + "n" * 100_000
HOSTILE_PROBLEM = "-rf '\x1b[31m\u202e[red]; drop table runs; --"
CONTENT = "sha256:" + "c" * 64
MI300X = "AMD Instinct MI300X"

_PROBLEM = "sha256:2b7121e52772718df45725b1fca36a4a4539b263ba8941c35d6495e318e8e121"
_CASES = {
    0: (
        "sha256:83ec2927d923cdd5616c8c43cb3970963f0fdec0c720c7a921b72f9ae73a4973",
        {"bs": 1, "dexpert": 2048, "dhidden": 7168, "nexpertspertoken": 4, "nroutedexperts": 32, "nsharedexperts": 1,
         "seed": 9371, "seqlen": 2048},
        {"input": {"dtype": "fp16", "shape": [1, 2048, 7168]}},
    ),
    1: (digest("case 1"), {"bs": 2, "seqlen": 4096}, {"input": {"dtype": "fp16", "shape": [2, 4096, 7168]}}),
}  # fmt: skip
_SOL_PROBLEM = "sha256:6a7cb8127160b9e1f94737730d2761c28fe45fc28efabe32b39b88fe7a33fc36"
_SOL_WORKLOAD = "sha256:d0c7d8b059eeafdd38c3c2adf34fd25f5a47a48ff884ab6c6f32f2b9857e61ec"
_IMPLEMENTATIONS = {
    "gpumode-kernelbot:29858": "sha256:63840fc0535039bd35cfe7486bfd765d7aa2d63387b740d0ea958d1eea587b98",
    "sol-execbench:6683": "sha256:9c97ccc5cd19865a4c858aad66725fa871e458e8c270608d3efe6bfac31a4f20",
}
# Everybody else's is user 1.
_AUTHORS = {
    "gpumode-kernelbot:29858": "302",
    "gpumode-kernelbot:30702": "302",
    "gpumode-kernelbot:30900": "44",
    "gpumode-kernelbot:10000": "44",
    "gpumode-kernelbot:20000": "666",
    "sol-execbench:6683": "solver-0ab8094f",
}
_PASSED = {"status": "passed", "passed": True, "leaderboard_mode": True, "identity": "final"}


def small_results() -> list[Row]:
    """The results of the snapshot, rows of `contracts.RESULTS`."""
    return [*_case_results(), *_aggregate_results(), *_sol_results()]


def publish(folder: Path, changed: list[Row] | None = None) -> Home:
    """Build and publish the snapshot in a folder, or one of other results; its home."""
    home = Home(folder)
    snapshots.publish(home, draft(home, changed))
    return home


def draft(home: Home, changed: list[Row] | None = None) -> snapshots.Snapshot:
    """The snapshot, or one of other results, built and not yet published."""
    results = small_results() if changed is None else changed
    connection = warehouse({"results": results, "submissions": _submissions(results)})
    connection.execute(f"create table runs as {statement('runs')}")
    made: dict[str, pa.Table] = {
        "runs": connection.sql("from runs").to_arrow_table(),
        "submissions": connection.sql("from submissions").to_arrow_table(),
        **rank(connection),
        **{name: arrow(TABLES[name], rows) for name, rows in _described(results).items()},
    }
    parts: dict[str, list[Path]] = {}
    for name, table in made.items():
        parts[name] = [home.root / "made" / f"{name}.parquet"]
        parts[name][0].parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.cast(TABLES[name].arrow_schema()), parts[name][0])
    about = {"ranking_policy": "ranking-v1", "facts_revision": "", "code_version": "", "inputs": {}, "inputs_key": ""}
    home.temporary.mkdir(parents=True, exist_ok=True)
    return drafts.build(home, parts, about)


def run_id(submission: int, case: int = 0) -> str:
    """Id of a run of the board with cases."""
    return f"gpumode-kernelbot:submission/{submission}/run/1/benchmark/{case}"


def _case_results() -> list[Row]:
    row = case_result
    return [
        row(10000, 0, 9000000.0, "2025-05-01T00:00:00"),
        row(20000, 0, 4233229.0, "2025-05-02T00:00:00"),
        row(30900, 0, 4233229.0, "2025-06-03T00:00:00"),
        row(30702, 0, 4109150.0, "2025-06-02T17:09:11.379"),
        row(
            29858, 0, 4175913.0, "2025-06-01T09:11:14.635", sample_count=20, mean_ns=4175913.45, min_ns=4057360.0,
            max_ns=4287644.0, std_ns=59575.79732838796,
            native_metrics='{"best_ns":4057360,"leaderboard_score_s":0.0073761345439469495,"mean_ns":4175913.45}',
            labels='{"platform":"Linux-5.15.0-136-generic-x86_64-with-glibc2.35","torch":"2.8.0.dev20250530+rocm6.3"}',
        ),
        row(29858, 1, 13000000.0, "2025-06-01T09:11:14.635"),
        row(
            40000, 0, None, "2025-06-04T00:00:00", status="incorrect", passed=False, leaderboard_mode=False,
            mode="test", flags=["NOT_FINITE:mean"],
        ),
    ]  # fmt: skip


def case_result(submission: int, case: int, value: float | None, observed_at: str, **columns: Any) -> Row:
    """A result on the board with cases."""
    return {
        **_PASSED,
        **_of_submission("gpumode-kernelbot", submission, BOARD, observed_at),
        "run_id": run_id(submission, case),
        "mode": "leaderboard",
        "runner": MI300X,
        "gpu": MI300X,
        "architecture": "gfx942",
        "case_index": case,
        "workload_digest": _CASES[case][0],
        "problem_digest": _PROBLEM,
        "protocol_digest": _kernelbot_protocol(None)["protocol_digest"],
        "environment_digest": _kernelbot_environment(MI300X, aggregate=False)["environment_digest"],
        "correctness_key": correctness_key({"comparator": "kernelbot_eval"}),
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
        "primary_value": value,
        "external_id": f"submission/{submission}/benchmark/{case}",
        **columns,
    }


def _aggregate_results() -> list[Row]:
    return [
        {
            **_PASSED,
            **_of_submission("gpumode-kernelbot", submission, "grayscale_v2", f"2026-01-0{submission % 10}T00:00:00"),
            "run_id": f"gpumode-kernelbot:submission/{submission}/leaderboard/{runner}",
            "mode": "leaderboard",
            "runner": runner,
            "gpu": kernelbot.hardware(runner).product,
            "architecture": kernelbot.hardware(runner).architecture,
            "workload_digest": digest("suite"),
            "problem_digest": digest("grayscale"),
            "protocol_digest": _kernelbot_protocol("unspecified")["protocol_digest"],
            "environment_digest": _kernelbot_environment(runner, aggregate=True)["environment_digest"],
            "correctness_key": correctness_key({"comparator": "kernelbot_eval"}),
            "primary_metric": "score",
            "primary_statistic": "unspecified",
            "primary_unit": "s",
            "primary_value": value,
            "native_metrics": canonical_json({"leaderboard_score_s": value}),
            "external_id": f"submission/{submission}/leaderboard",
        }
        for submission, runner, value in (
            (50001, "B200", 1.0048658277929109e-05),
            (50002, "B200_Nebius", 0.0005),
            (50003, "H100", 0.0025),
        )
    ]


def _sol_results() -> list[Row]:
    common = {
        **_PASSED,
        "mode": "release",
        "runner": "B200",
        "gpu": "NVIDIA B200",
        "architecture": "sm_100",
        "workload_digest": _SOL_WORKLOAD,
        "problem_digest": _SOL_PROBLEM,
        "protocol_digest": sol.protocol("v1.0")["protocol_digest"],
        "environment_digest": sol.environment("B200", "v1.0")["environment_digest"],
        "correctness_key": correctness_key(_SOL_CORRECTNESS),
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
    }
    return [
        {
            **common,
            **_of_submission("sol-execbench", number, KERNEL, observed_at),
            "run_id": f"sol-execbench:submission/{number}",
            "primary_value": value,
            "native_metrics": metrics,
            "labels": '{"worker":"B200-ext-prod-2527"}',
            "external_id": f"submission/{number}",
        }
        for number, value, observed_at, metrics in (
            (
                6683,
                143901.0,
                "2026-06-07T06:16:48.116",
                '{"avg_speedup":2.338,"fast_1_count":16,"fast_1_total":16,"latency_ms":0.143901,"sol_score":0.734476}',
            ),
            (29858, 200000.0, "2026-06-08T00:00:00", '{"latency_ms":0.2}'),
        )
    ]


_SOL_CORRECTNESS = {
    "comparator": "sol_execbench_eval",
    "description": "Correctness must pass on every case in the SOL evaluation stack.",
}


def _of_submission(source: str, number: int, problem: str, observed_at: str) -> Row:
    return {
        "source": source,
        "submission_key": f"{source}:{number}",
        "submission_id": number,
        "problem": problem,
        "implementation_digest": _IMPLEMENTATIONS.get(f"{source}:{number}")
        or digest(f"implementation {source} {number}"),
        "observed_at": observed_at,
        "native_metrics": "{}",
        "labels": "{}",
        "system": "{}",
        "content_digest": CONTENT,
        "locator": f"{source}.parquet",
        "item": str(number),
    }


def _submissions(results: list[Row]) -> list[Row]:
    found = {
        row["submission_key"]: {
            **{name: row[name] for name in ("submission_key", "source", "submission_id", "problem")},
            "author_key": _author_key(row["source"], _AUTHORS.get(row["submission_key"], "1")),
            "revision": f"submission-{row['submission_id']}",
            "submitted_at": row["observed_at"],
            "license_declared": "unknown",
            "license_concluded": "unknown",
            **(
                {"file_name": "moe_v4_clean.py", "source_digest": digest("text"), "source_bytes": 33852}
                if row["submission_key"] == "gpumode-kernelbot:29858"
                else {}
            ),
        }
        for row in results
    }
    return list(found.values())


def _author_key(source: str, author: str) -> str:
    return f"{source}:user/{author}"


def _described(results: list[Row]) -> dict[str, list[Row]]:
    """The tables that say what results refer to."""
    facts = next(one for one in boards_as_documents() if one["leaderboard"] == BOARD)
    kernelbot_correctness = {
        "correctness": '{"comparator":"kernelbot_eval"}',
        "correctness_key": correctness_key({"comparator": "kernelbot_eval"}),
    }
    sol_correctness = {
        "correctness": canonical_json(_SOL_CORRECTNESS),
        "correctness_key": correctness_key(_SOL_CORRECTNESS),
    }
    return {
        "problems": [
            {
                "source": "gpumode-kernelbot", "problem": BOARD, "problem_digest": _PROBLEM, "slug": "gpumode-amd-moe",
                "family": "moe", "title": "AMD DeepSeek-style MoE layer", "scoring": "per_case", "ranking_by": "geom",
                "axes": canonical_json(facts["axes"]), "inputs": canonical_json(facts["inputs"]),
                "outputs": canonical_json(facts["outputs"]), "curated": True, "tags": ["moe"], "document": "{}",
            },
            {
                "source": "gpumode-kernelbot", "problem": "grayscale_v2", "problem_digest": digest("grayscale"),
                "slug": "gpumode-grayscale-v2", "family": "image", "title": "RGB to grayscale", "scoring": "aggregate",
                "axes": "{}", "inputs": "[]", "outputs": "[]", "document": "{}",
            },
            {
                "source": "sol-execbench", "problem": HOSTILE_PROBLEM, "problem_digest": digest("hostile"),
                "slug": "red", "title": HOSTILE_PROBLEM, "axes": "{}", "inputs": "[]", "outputs": "[]",
                "document": "{}",
            },
            {
                "source": "sol-execbench", "problem": KERNEL, "problem_digest": _SOL_PROBLEM, "slug": "080-moe",
                "family": "moe", "title": "Moe complete layer", "scoring": "suite", "axes": "{}", "inputs": "[]",
                "outputs": "[]", "curated": True, "document": "{}",
            },
        ],
        "cases": [
            *(
                {
                    "source": "gpumode-kernelbot", "problem": BOARD, "workload_digest": workload, "kind": "case",
                    "problem_digest": _PROBLEM, "axes": canonical_json(axes), "tensors": canonical_json(tensors),
                    "document": "{}", **kernelbot_correctness,
                }
                for workload, axes, tensors in _CASES.values()
            ),
            {
                "source": "gpumode-kernelbot", "problem": "grayscale_v2", "workload_digest": digest("suite"),
                "kind": "suite", "problem_digest": digest("grayscale"), "statistic": "unspecified", "document": "{}",
                **kernelbot_correctness,
            },
            {
                "source": "sol-execbench", "problem": KERNEL, "workload_digest": _SOL_WORKLOAD, "kind": "suite",
                "problem_digest": _SOL_PROBLEM, "statistic": "mean", "document": "{}", **sol_correctness,
                "suite_cases": '[{"axes":{"batch_seq_len":384},"externalId":"b1c0160b5a28"}]',
            },
        ],
        "implementations": [
            {
                "implementation_digest": row["implementation_digest"], "submission_key": row["submission_key"],
                "problem_digest": row["problem_digest"], "language": "python", "architectures": [row["architecture"]],
                "products": [row["gpu"]], "dtypes": ["fp16"], "document": "{}",
            }
            for row in {row["implementation_digest"]: row for row in results}.values()
        ],
        "authors": [
            {
                "author_key": _author_key(source, author), "source": source, "author_id": author, "author_name": name,
                "project_slug": f"kernelbot-user-{author}", "project_name": name or f"KernelBot user {author}",
                "stable": True, "submissions": 1,
            }
            for source, author, name in (
                ("gpumode-kernelbot", "302", None),
                ("gpumode-kernelbot", "44", None),
                ("gpumode-kernelbot", "666", HOSTILE),
                ("gpumode-kernelbot", "1", None),
                ("sol-execbench", "1", "one"),
                ("sol-execbench", "solver-0ab8094f", "solver-0ab8094f"),
            )
        ],
        "protocols": [_kernelbot_protocol(None), _kernelbot_protocol("unspecified"), sol.protocol("v1.0")],
        "environments": [
            _kernelbot_environment(MI300X, aggregate=False),
            *(_kernelbot_environment(label, aggregate=True) for label in ("B200", "B200_Nebius", "H100")),
            sol.environment("B200", "v1.0"),
        ],
        "artifacts": [{"source_digest": digest("text"), "size_bytes": 33852, "license": "unknown"}],
        "sources": [
            {
                "source": "gpumode-kernelbot", "name": "GPU MODE KernelBot", "url": "https://example.org/kernelbot",
                "license": "Reciprocity", "attribution": "GPU Mode and the KernelBot dataset", "redistributable": True,
            },
            {
                "source": "sol-execbench", "name": "NVIDIA SOL-ExecBench", "url": "https://example.org/sol",
                "license": "site terms", "attribution": "NVIDIA SOL-ExecBench", "redistributable": True,
            },
        ],
        "source_files": [
            {"content_digest": CONTENT, "locator": f"{source}.parquet", "source": source,
             "fetched_at": "2026-07-01T12:00:00"}
            for source in ("gpumode-kernelbot", "sol-execbench")
        ],
    }  # fmt: skip


def _kernelbot_protocol(statistic: str | None) -> Row:
    spec = kernelbot.protocol(statistic)
    text, key = document("BenchmarkProtocol", spec)
    return {
        "protocol_digest": key,
        "harness": spec["harness"]["name"],
        "repository": spec["harness"]["repository"],
        "timer": "wall_clock",
        "primary_statistic": statistic or "mean",
        "correctness_reference": "problem reference implementation",
        "comparator": "kernelbot_eval",
        "family": "gpumode_kernelbot",
        "notes": spec["comparability"]["notes"],
        "document": text,
    }


def _kernelbot_environment(label: str, *, aggregate: bool) -> Row:
    text, key = document("ExecutionEnvironment", kernelbot.environment(label, aggregate=aggregate))
    machine = kernelbot.hardware(label)
    return {
        "environment_digest": key,
        "vendor": machine.vendor,
        "product": machine.product,
        "architecture": machine.architecture,
        "runner": label if aggregate else None,
        "software": "{}",
        "document": text,
    }
