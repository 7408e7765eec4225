"""Ordinary per-case rows: submissions in order of time, each with its test, benchmark, ranked and profile runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa

from replica.kernelbot_schemas import BENCHMARK_FIELDS, PER_CASE, RESULT_FIELDS
from replica.source_texts import SourceTexts
from replica.traps import MIXTURE, PUBLISHED_ROW

# The benchmark cases of the per-case boards. The first two of amd-mixture-of-experts are those of a published record.
CASES: dict[str, list[str]] = {
    "amd-fp8-mm": [
        f"k: {k}; m: {m}; n: {n}; seed: {1000 + 37 * i}"
        for i, (m, k, n) in enumerate(
            (m, k, n) for m in (512, 2048, 8192) for k in (256, 2048) for n in (512, 1536, 6144)
        )
    ],
    "amd-mixture-of-experts": [
        MIXTURE.format(9371, 2048),
        MIXTURE.format(1212, 8192),
        MIXTURE.format(4242, 4096),
    ],
    "amd-mla-decode": [
        f"dq: 1536; dim: 7168; seed: {7000 + i}; prefill: {prefill}; batchsize: {batch}"
        for i, (batch, prefill) in enumerate([(64, 1024), (64, 6144), (128, 512), (128, 4096)])
    ],
    "amd-identity": [f"size: {2**n}; seed: {n}" for n in (10, 16, 20, 24)],
    "amd-all2all": [
        f"num_experts: {8 * 2**n}; experts_per_token: {min(8, 2 + n)}; hidden_dim: 7168; max_num_tokens: {16 * 4**n}; "
        f"seed: {600 + n}; world_size: 8"
        for n in range(5)
    ],
    "amd-gemm-rs": [
        f"world_size: 8; m: {64 * 4**n}; n: 7168; k: 2304; has_bias: {n % 2 == 0}; seed: {40 + n}" for n in range(6)
    ],
    "amd-ag-gemm": [
        f"world_size: 8; m: {64 * 4**n}; n: 4608; k: 7168; has_bias: {n % 2 == 1}; seed: {80 + n}" for n in range(6)
    ],
}
BOARD_IDS = {
    "amd-identity": 398,
    "amd-fp8-mm": 399,
    "amd-mixture-of-experts": 430,
    "amd-mla-decode": 463,
    "amd-all2all": 563,
    "amd-gemm-rs": 564,
    "amd-ag-gemm": 565,
}
# Nanoseconds of a board's first case at speed 1.
_BASE_NS = {"amd-identity": 9e3, "amd-fp8-mm": 6e4, "amd-mixture-of-experts": 2.4e6, "amd-mla-decode": 8e5}
_BOARD_WEIGHTS = dict(zip(BOARD_IDS, (2, 14, 11, 8, 5, 5, 5), strict=True))

_CHUNK_ROWS = 20_000
_DAY = 86_400_000_000  # microseconds
_START = 1_744_675_200_000_000  # 2025-04-15

# Per case: what a submission's runs are, and how many of the submissions that passed are of that kind.
_RANKED = [
    ((("test", True), ("benchmark", True), ("leaderboard", True)), 0.348),
    ((("test", True), ("leaderboard", True)), 0.398),
]
_OTHERS = [
    ((("test", True), ("benchmark", True)), 0.083),
    ((("test", True), ("benchmark", True), ("leaderboard", False)), 0.028),
    ((("test", True), ("benchmark", True), ("profile.0", True)), 0.017),
]
_Runs = tuple[tuple[str, bool], ...]


def submission_plan(chance: Random, rows: int, passed: int) -> list[_Runs]:
    """The runs of each submission, in order: `rows` of them in all, `passed` of which passed in leaderboard mode."""
    plan: list[_Runs] = []
    for runs, share in _RANKED:
        plan.extend([runs] * int(passed * share))
    plan.extend([(("leaderboard", True),)] * (passed - len(plan)))
    for runs, share in _OTHERS:
        plan.extend([runs] * int(passed * share))
    plan.extend([(("test", False),)] * max(0, rows - sum(map(len, plan))))
    chance.shuffle(plan)
    return plan


class PerCaseRows:
    """Rows of submissions.parquet in order of time. `user_id` is the author's place in a list, until it is redrawn."""

    def __init__(self, chance: Random, submissions: int, texts: SourceTexts | None) -> None:
        self.chance = chance
        self.texts = texts
        self.authors = max(12, int(9 * math.sqrt(submissions)))
        self.older: list[bool] = []
        self.runs = 0
        self.eligible_runs = 0
        self._chunk = _CHUNK_ROWS if texts is None else 1_000
        self._speed: dict[tuple[str, int], float] = {}
        self._last: dict[str, tuple[list[tuple[str, ...]], float]] = {}
        self._tests = {
            board: [spec.replace("seed: ", "seed: 9") for spec in specs[:3]] for board, specs in CASES.items()
        }

    def batches(self, plan: list[_Runs]) -> Iterator[pa.RecordBatch]:
        """The rows of a plan, some thousands at a time. `older`, `runs` and `eligible_runs` count along."""
        self._clear()
        submission, run_id = 3_000, 10_000
        names, weights = list(_BOARD_WEIGHTS), list(_BOARD_WEIGHTS.values())
        start, step = _START, 200 * _DAY // max(1, len(plan))
        for place, runs in enumerate(plan):
            submission += 1 + (self.chance.random() < 0.2)
            submission += submission == PUBLISHED_ROW["submission_id"]
            board = self.chance.choices(names, weights)[0]
            author = int(self.authors * self.chance.random() ** 3)
            time = start + place * step + self.chance.randrange(max(1, step // 1000)) * 1000
            code = None if self.texts is None else self.texts.text(self.chance, submission, 10_000)
            for mode, passed in runs:
                run_id += 1
                self._add(board, author, submission, run_id, time, mode, passed, code)
            early = place < 0.75 * len(plan) and place % 10 < 4
            self.older.extend([False] * (len(runs) - 1) + [early])
            if len(self._rows) >= self._chunk:
                yield self._batch()
        if self._rows:
            yield self._batch()

    def _clear(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._results: dict[str, list[str | None]] = {name: [None] * (self._chunk + 3) for name in RESULT_FIELDS}
        self._no_result: list[bool] = []

    def _add(
        self,
        board: str,
        author: int,
        submission: int,
        run_id: int,
        time: int,
        mode: str,
        passed: bool,
        code: str | None,
    ) -> None:
        row, results = len(self._rows), self._results
        score = None
        failure = None if passed else self.chance.choice(["compile", "wrong", "crash", "timeout"])
        self._no_result.append(mode.startswith("profile") or failure in ("compile", "crash", "timeout"))
        if mode == "test" and not self._no_result[row]:
            specs = self._tests[board]
            results["check"][row] = "pass" if passed else "fail"
            results["test-count"][row] = str(len(specs))
            for index, spec in enumerate(specs):
                results[f"test.{index}.spec"][row] = spec
                results[f"test.{index}.status"][row] = "pass" if passed or index else "fail"
                results[f"test.{index}.message"][row] = (
                    None if passed or index else "mismatch found! 12 elements differ"
                )
        elif not passed:
            results["check"][row] = "fail"
        if passed and mode in ("benchmark", "leaderboard"):
            figures, score = self._figures(board, author)
            results["benchmark-count"][row] = str(len(figures))
            for index, (spec, case) in enumerate(zip(CASES[board], figures, strict=True)):
                results[f"benchmark.{index}.spec"][row] = spec
                for name, value in zip(BENCHMARK_FIELDS, case, strict=True):
                    results[f"benchmark.{index}.{name}"][row] = value
            self.runs += len(figures)
            self.eligible_runs += len(figures) if mode == "leaderboard" else 0
        else:
            self.runs += 1
        score = score if mode == "leaderboard" else None
        file_name = "submission.py" if author % 3 else f"{board.replace('-', '_')}_v{submission % 40}.py"
        multiple = board in ("amd-all2all", "amd-gemm-rs", "amd-ag-gemm")
        gpu = "AMD Instinct MI325X" if author % 29 == 7 else "AMD Instinct MI300X"
        duration = round(self.chance.uniform(2, 90), 6)
        self._rows.append(
            (
                submission, BOARD_IDS[board], author, time, file_name, code, submission, run_id, time + 4_000_000,
                time + 4_000_000 + int(duration * 1e6), mode, score, passed, failure, duration, gpu,
                f"2.8.0.dev2025{4 + submission % 3:02}{1 + submission % 28:02}+rocm6.3", 8 if multiple else 1,
            )
        )  # fmt: skip

    def _figures(self, board: str, author: int) -> tuple[list[tuple[str, ...]], float]:
        """Texts of mean, runs, best, worst, std and err for each case of the board, and the score that they give."""
        chance = self.chance
        if board in self._last and chance.random() < 0.02:
            return self._last[board]
        speed = self._speed.get((board, author)) or chance.uniform(1.5, 8)
        speed = max(0.4, speed * chance.uniform(0.88, 1.01))
        self._speed[board, author] = speed
        figures: list[tuple[str, ...]] = []
        logarithms: list[float] = []
        for index in range(len(CASES[board])):
            mean = round(_BASE_NS.get(board, 2e5) * (1 + index) * speed * chance.uniform(0.97, 1.03), 2)
            runs = chance.choice((3, 5, 10, 20, 100))
            std = mean * chance.uniform(0.001, 0.02)
            best, worst = int(mean - std), int(mean + 2 * std) + 1
            figures.append((repr(mean), str(runs), f"{best}.0", f"{worst}.0", repr(std), repr(std / math.sqrt(runs))))
            logarithms.append(math.log(mean / 1e9))
        self._last[board] = figures, math.exp(math.fsum(logarithms) / len(logarithms))
        return self._last[board]

    def _batch(self) -> pa.RecordBatch:
        count = len(self._rows)
        column: dict[str, Any] = dict(zip(_PER_CASE_ORDER, zip(*self._rows, strict=True), strict=True))
        failures = column.pop("failure")
        result_type = PER_CASE.field("run_result").type
        leaves = [pa.array(self._results[name][:count], pa.string()) for name in RESULT_FIELDS]
        column["run_result"] = pa.StructArray.from_arrays(
            leaves, fields=list(result_type), mask=pa.array(self._no_result)
        )
        column["run_compilation"] = [
            {
                "command": "nvcc -O3",
                "exit_code": 1,
                "nvcc_found": True,
                "stderr": "error: expected ';'",
                "success": False,
            }
            if failure == "compile"
            else None
            for failure in failures
        ]
        column["run_meta"] = [
            _META[failure] | {"duration": time} for failure, time in zip(failures, column.pop("duration"), strict=True)
        ]
        column["run_system_info"] = [
            {
                "cpu": "AMD EPYC 9654 96-Core Processor",
                "gpu": gpu,
                "platform": "Linux-5.15.0-136-generic-x86_64-with-glibc2.35",
                "torch": torch,
                "device_count": devices,
                "runtime": "ROCm",
            }
            for gpu, torch, devices in zip(column.pop("gpu"), column.pop("torch"), column.pop("devices"), strict=True)
        ]
        self._clear()
        arrays = [
            column[field.name] if isinstance(column[field.name], pa.Array) else pa.array(column[field.name], field.type)
            for field in PER_CASE
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=PER_CASE)


_PER_CASE_ORDER = [
    "submission_id", "leaderboard_id", "user_id", "submission_time", "file_name", "code", "code_id", "run_id",
    "run_start_time", "run_end_time", "run_mode", "run_score", "run_passed", "failure", "duration", "gpu", "torch",
    "devices",
]  # fmt: skip
_META: dict[str | None, dict[str, Any]] = {
    failure: {"command": "python eval.py", "exit_code": code, "stderr": stderr, "stdout": stdout, "success": code == 0}
    for failure, code, stderr, stdout in [
        (None, 0, "", "AMD ROCm warm-up done\n" * 8),
        ("compile", 1, "ninja: build stopped: subcommand failed.\n", ""),
        ("wrong", 112, "", "mismatch found!\n"),
        ("crash", 1, "Traceback (most recent call last):\nRuntimeError: HIP error: invalid argument\n", ""),
        ("timeout", 114, "Timeout: the run took longer than 180 seconds\n", ""),
    ]
}
