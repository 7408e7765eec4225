"""The KernelBot half of the corpus: eleven Parquet files with the real ones' schemas, row counts and habits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replica.aggregate_traps import aggregate_traps
from replica.expectations import KERNELBOT, Corpus, Expectation, FileCounts
from replica.kernelbot_schemas import (
    AGGREGATE,
    LEADERBOARDS,
    PER_CASE,
    SUBSETS,
    replace,
    to_table,
)
from replica.per_case_corpus import BOARD_IDS, PerCaseRows, submission_plan
from replica.source_texts import SourceTexts
from replica.traps import ODD_FILES, PUBLISHED_EXPECTATION, PUBLISHED_ROW, Trap, per_case_traps

# Rows of submissions.parquet at scale 1. With its three subsets they are about 250,000 per-case rows, and all eleven
# files have about 532,000.
PER_CASE_ROWS = 150_000
PER_CASE_PASSED = 60_357


@dataclass(frozen=True)
class _AggregateFile:
    rows: int
    passed: int
    boards: dict[str, int]  # board -> weight
    start: str
    code_bytes: int = 10_000


AGGREGATE_FILES = {
    "nvidia_nvfp4_submissions": _AggregateFile(
        231_307,
        117_483,
        {
            "nvfp4_gemv": 8,
            "nvfp4_gemm": 7,
            "nvfp4_dual_gemm": 5,
            "modal_nvfp4_dual_gemm": 3,
            "nvfp4_group_gemm": 6,
        },
        "2025-11-10",
    ),
    "amd_1_1m_competition_submissions": _AggregateFile(
        18_700, 12_000, {"amd-mxfp4-mm": 4, "amd-moe-mxfp4": 3, "amd-mixed-mla": 2}, "2026-02-20"
    ),
    "trimul_submissions": _AggregateFile(5_000, 3_400, {"trimul": 1}, "2025-09-01"),
    "helion_b200_nebius_submissions": _AggregateFile(
        500,
        320,
        {
            "causal_conv1d": 3,
            "fp8_quant": 3,
            "gated_deltanet_chunk_fwd_h": 2,
            "gated_deltanet_chunk_fwd_o": 2,
            "gated_deltanet_recompute_w_u": 1,
        },
        "2026-03-14",
    ),
    "pmpp_v2_submissions": _AggregateFile(
        8_000,
        6_073,
        {
            "conv2d_v2": 2,
            "grayscale_v2": 4,
            "histogram_v2": 2,
            "matmul_v2": 3,
            "prefixsum_v2": 2,
            "sort_v2": 1,
            "vectoradd_v2": 5,
            "vectorsum_v2": 3,
        },
        "2025-10-01",
    ),
    "linalg_submissions": _AggregateFile(
        17_500, 14_293, {"qr_v2": 3, "eigh": 2, "cholesky": 3}, "2026-05-05", code_bytes=100_000
    ),
}

# Boards of the past that no data file of the corpus has; they fill leaderboards.parquet up to its 39 rows.
_BOARDS_LISTED = 39
_OLD_BOARDS = {773: "qr"} | {
    339 + place: f"{stem}{suffix}"
    for place, (suffix, stem) in enumerate(
        (suffix, stem)
        for suffix in ("", "_warmup", "_practice", "_internal")
        for stem in (
            "conv2d",
            "grayscale",
            "histogram",
            "matmul",
            "prefixsum",
            "sort",
            "vectoradd",
            "vectorsum",
            "softmax",
        )
    )
}

_NAMES = [
    "ada", "grace", "linus", "李雷", "Zoë", "محمد", "Ωμέγα", "नेहा", "さくら", "O'Brien", "crab 🦀", "дмитрий", "user",
]  # fmt: skip
_CHUNK_ROWS = 20_000
_DAY = 86_400_000_000  # microseconds


def microseconds(instant: str) -> int:
    """Microseconds since 1970 of an ISO instant in UTC."""
    since = datetime.fromisoformat(instant).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * _DAY + since.seconds * 1_000_000 + since.microseconds


def write_kernelbot(corpus: Corpus, boards: dict[str, dict[str, Any]]) -> None:
    """Writes `<folder>/kernelbot/*.parquet` and records what must come out of them. `boards`: facts by board name."""
    folder = corpus.folder / "kernelbot"
    folder.mkdir(parents=True, exist_ok=True)
    texts = SourceTexts(corpus.seed) if corpus.code else None
    _write_leaderboards(corpus, folder, boards)
    traps = [*per_case_traps(), *aggregate_traps()] if corpus.traps else []
    _write_per_case(corpus, folder, traps, texts)
    first_id = 100_000 + round(200_000 * corpus.scale)
    for name, kind in AGGREGATE_FILES.items():
        rows, passed = round(kind.rows * corpus.scale), round(kind.passed * corpus.scale)
        batches = list(_aggregate_batches(corpus, name, kind, rows, passed, first_id, boards, texts))
        bulk = pa.Table.from_batches(batches, AGGREGATE)
        _finish(corpus, folder, name, bulk, FileCounts(rows, 0, 0, rows, passed), traps)
        first_id += 2 * rows + 1_000
    if corpus.traps:
        for name, schema in ODD_FILES.items():
            _finish(corpus, folder, name, schema.empty_table(), FileCounts(), traps)


def _finish(
    corpus: Corpus,
    folder: Path,
    name: str,
    bulk: pa.Table,
    counts: FileCounts,
    traps: list[Trap],
) -> None:
    """Appends the file's odd rows, writes it as one row group, and records counts and expectations."""
    mine = [trap for trap in traps if trap.file == name]
    table = pa.concat_tables([bulk, to_table([trap.row for trap in mine], bulk.schema)])
    locator = f"{name}.parquet"
    expectations: list[Expectation] = []
    for item, trap in enumerate(mine, start=bulk.num_rows):
        expectations.extend(trap.expectations(locator, item))
    pq.write_table(table, folder / locator, row_group_size=max(1, table.num_rows), compression="snappy")
    corpus.count(KERNELBOT, locator, counts, expectations)


def _write_leaderboards(corpus: Corpus, folder: Path, boards: dict[str, dict[str, Any]]) -> None:
    # Older than the data: amd-identity, the linear-algebra boards and those without a known id are not in it yet.
    known = {BOARD_IDS.get(name, boards.get(name, {}).get("upstream_id")): name for name in [*BOARD_IDS, *boards]}
    listed = {number: name for number, name in known.items() if number is not None and number != 398 and number < 771}
    listed |= dict(list(_OLD_BOARDS.items())[: _BOARDS_LISTED - len(listed)])
    rows = [
        {
            "id": number,
            "name": name,
            "deadline": microseconds("2025-06-02") + (number - 339) * _DAY,
            "lang": "py",
            "description": f"Kernels for {name}",
            "reference": None,
            "gpu_types": boards.get(name, {}).get("runners") or ["MI300"],
        }
        for number, name in sorted(listed.items())
    ]
    table = to_table(rows, LEADERBOARDS)
    _finish(corpus, folder, "leaderboards", table, FileCounts(rows_kept=len(rows)), [])


def _write_per_case(corpus: Corpus, folder: Path, traps: list[Trap], texts: SourceTexts | None) -> None:
    chance = Random(f"{corpus.seed}/per case")
    published = to_table([PUBLISHED_ROW], PER_CASE)
    rows, passed = round(PER_CASE_ROWS * corpus.scale) - 1, round(PER_CASE_PASSED * corpus.scale) - 1
    plan = submission_plan(chance, rows, passed)
    builder = PerCaseRows(chance, len(plan), texts)
    bulk = pa.Table.from_batches(list(builder.batches(plan)), PER_CASE)
    ranked = pc.and_(pc.equal(bulk["run_mode"], "leaderboard"), bulk["run_passed"])
    older = pa.array(builder.older, pa.bool_())
    counts = FileCounts(bulk.num_rows, 0, 0, builder.runs, builder.eligible_runs)
    corpus.expectations.append(PUBLISHED_EXPECTATION)
    counts.add(PUBLISHED_EXPECTATION)
    subsets = {
        "submissions": None,
        "successful_submissions": ranked,
        "deduplicated_submissions": older,
        "deduplicated_successful_submissions": pc.and_(older, ranked),
    }
    for name, mask in subsets.items():
        part = bulk if mask is None else bulk.filter(mask)
        if name in ("submissions", "successful_submissions"):
            part = pa.concat_tables([published, part])
        # Authors are numbered anew in every export: the same person has another number in each of these files.
        redrawn = Random(f"{corpus.seed}/users/{name}").sample(range(1, 1_000_000), builder.authors)
        numbers = pc.take(pa.array(redrawn, pa.int64()), part["user_id"])
        part = replace(part, "user_id", numbers)
        if name != "submissions":
            part = SUBSETS[name](part)
            counts = FileCounts(rows_duplicate=part.num_rows)
        _finish(corpus, folder, name, part, counts, traps)


def _aggregate_batches(
    corpus: Corpus,
    name: str,
    kind: _AggregateFile,
    rows: int,
    passed: int,
    first_id: int,
    boards: dict[str, dict[str, Any]],
    texts: SourceTexts | None,
) -> Iterator[pa.RecordBatch]:
    chance = Random(f"{corpus.seed}/{name}")
    outcomes = [True] * passed + [False] * (rows - passed)
    chance.shuffle(outcomes)
    people = max(10, int(7 * math.sqrt(rows)))
    users = [(str(10**16 + chance.randrange(9 * 10**16)), f"{_NAMES[n % len(_NAMES)]}{n}") for n in range(people)]
    board_names, weights = list(kind.boards), list(kind.boards.values())
    best: dict[tuple[str, str, int], float] = {}
    base = {board: 10 ** chance.uniform(-4.9, -2.8) for board in board_names}
    start, step = microseconds(kind.start), 90 * _DAY // max(1, rows)
    submission, board, author, runner = first_id, board_names[0], 0, 0
    previous = False
    latest: dict[tuple[str, str], float] = {}
    chunk: list[tuple[Any, ...]] = []
    for place, passes in enumerate(outcomes):
        runners = boards.get(board, {}).get("runners") or ["B200"]
        # One submission on several fleets: one row each.
        if previous and passes and runner + 1 < len(runners) and chance.random() < 0.5:
            runner += 1
        else:
            submission += 1 + (chance.random() < 0.3)
            board = chance.choices(board_names, weights)[0]
            author, runner = int(people * chance.random() ** 3), 0
            runners = boards.get(board, {}).get("runners") or ["B200"]
            if board == "nvfp4_group_gemm" and chance.random() < 0.5:
                runner = len(runners) - 1
            time = start + place * step + chance.randrange(max(1, step // 1000)) * 1000
            code = None if texts is None else texts.text(chance, submission, kind.code_bytes)
        previous = passes
        facts = boards.get(board, {})
        user_id, user_name = users[author]
        head = (submission, facts.get("upstream_id"), board, user_id, user_name, submission, "submission.py", time)
        if passes:
            fleet = board, runners[runner]
            speed = best.get((*fleet, author)) or base[board] * chance.uniform(1.5, 9)
            speed = best[*fleet, author] = max(base[board] * 0.4, speed * chance.uniform(0.85, 1.02))
            # Now and then a score is exactly the one before it on that board.
            score = latest.get(fleet, speed) if chance.random() < 0.01 else speed
            latest[fleet] = score
            chunk.append((*head, "succeeded", score, True, "leaderboard", runners[runner], code))
        else:
            status = chance.choices(["succeeded", "failed", "hacked", "active"], [12, 5, 2, 1])[0]
            chunk.append((*head, status, None, None, None, None, code))
        if len(chunk) >= (_CHUNK_ROWS if texts is None else 1_000):
            yield _aggregate_batch(chunk)
            chunk = []
    if chunk:
        yield _aggregate_batch(chunk)


def _aggregate_batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), AGGREGATE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=AGGREGATE)
