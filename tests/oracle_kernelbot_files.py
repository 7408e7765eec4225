"""KernelBot's Parquet files, both families: valid rows, each run once, and sources (see ``oracle``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle import Json, Rejected, canonical, integer_id, moment, number, present, sha256, text_of
from tests.oracle_tables import Corpus

SOURCE = "gpumode-kernelbot"

FILE_ORDER = (
    "submissions",
    "successful_submissions",
    "deduplicated_submissions",
    "deduplicated_successful_submissions",
)
# Boards that upstream's own list of boards may lack; the facts name the others.
BOARD_NAMES = {"398": "amd-identity", "563": "amd-all2all", "564": "amd-gemm-rs", "565": "amd-ag-gemm"}
COLUMNS = [
    *("submission_id", "leaderboard_id", "problem_name", "user_id", "code_id", "file_name", "submission_time"),
    *("status", "score", "passed", "mode", "runner"),
    *("run_id", "run_mode", "run_score", "run_passed", "run_result", "run_system_info"),
    *("run_compilation.success", "run_meta.success"),
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass
class Row:
    """A valid row of a submissions file."""

    locator: str
    content_digest: str
    number: int
    values: Json
    submission_id: int
    board: str
    submitted_at: datetime | None
    content: str  # what two rows of one run are compared by
    run_key: str = ""  # the run id, or what takes its place; per case only


def cell(value: Json) -> Json:
    """A value of a column; text that is no UTF-8 becomes the rejection that its row gets."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return Rejected("BAD_TEXT")


def column_values(column: pa.ChunkedArray) -> list[Json]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        # As integers, since Python's own times have no nanoseconds; what is stored is UTC, or is taken as UTC.
        scale = PER_SECOND[kind.unit]
        stored = column.cast(pa.int64()).to_pylist()
        return [None if ticks is None else time_of(ticks * 10**6 // scale) for ticks in stored]
    try:
        values: list[Json] = column.to_pylist()
    except UnicodeDecodeError:
        values = [cell(value) for value in column]
    return values


def time_of(microseconds: int) -> Json:
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return Rejected("BAD_TIME", str(microseconds))


def records(path: Path, code: bool) -> Iterator[Json]:
    """The rows of a file with the columns that matter, whatever their types are."""
    file = pq.ParquetFile(path)
    table = file.read(columns=[*COLUMNS, "code"] if code else COLUMNS)
    columns = {}
    for name in table.column_names:
        column = table[name]
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        # The source is hashed as bytes, valid UTF-8 or not.
        columns[name] = column_values(column.cast(pa.large_binary()) if name == "code" and text else column)
    for index in range(table.num_rows):
        yield {name: values[index] for name, values in columns.items()}


def run_content(values: Json) -> str:
    return canonical(present({name: values.get(name) for name in ("run_passed", "run_score", "run_result")}))


def score_content(values: Json) -> str:
    return canonical(present({name: values.get(name) for name in ("status", "passed", "mode", "score")}))


def valid_row(locator: str, file_digest: str, index: int, values: Json, names: dict[str, str], per_case: bool) -> Row:
    for value in values.values():
        if isinstance(value, Rejected):
            raise value
    board_id = text_of(values.get("leaderboard_id"))
    board = text_of(values.get("problem_name"))
    if board is None and board_id is not None:
        board = names.get(board_id, f"board-{board_id}")
    submission_id = integer_id(values.get("submission_id"))
    submitted_at = moment(values.get("submission_time"))
    if board is None:
        raise Rejected("NO_BOARD")
    content = run_content(values) if per_case else score_content(values)
    row = Row(locator, file_digest, index, values, submission_id, board, submitted_at, content)
    if per_case:
        mode = text_of(values.get("run_mode")) or "unknown"
        row.run_key = text_of(values.get("run_id")) or f"{mode}-{sha256(content)[7:19]}"
    return row


def file_order(path: Path) -> tuple[int, str]:
    return (FILE_ORDER.index(path.stem) if path.stem in FILE_ORDER else len(FILE_ORDER), path.name)


def board_names(folder: Path, facts: Json) -> dict[str, str]:
    """Board id to name: upstream's list of boards first, then what is known of it."""
    known = ((text_of(board["upstream_id"]), board["leaderboard"]) for board in facts["boards"])
    names = BOARD_NAMES | {board_id: name for board_id, name in known if board_id is not None}
    path = folder / "leaderboards.parquet"
    for row in pq.read_table(path).to_pylist() if path.exists() else []:
        board_id, name = text_of(row.get("id")), text_of(row.get("name"))
        if board_id is not None and name is not None:
            names[board_id] = name
    return names


# --- one run once ---------------------------------------------------------------------------------------------


def once_per_case(rows: list[Row], corpus: Corpus) -> list[Row]:
    """The rows that stay, of per-case rows in the order of their files."""
    taken_from: dict[str, str] = {}
    by_file_and_run: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        taken_from.setdefault(row.board, row.locator)
        by_file_and_run.setdefault((row.locator, row.submission_id, row.run_key), []).append(row)
    kept: dict[tuple[int, str], Row] = {}
    for (_, submission_id, run_key), same in by_file_and_run.items():
        first = min(same, key=lambda row: sha256(row.content))
        if len({row.content for row in same}) > 1:
            corpus.conflicts.append(conflict(first))
        if kept.setdefault((submission_id, run_key), first) is first and taken_from[first.board] != first.locator:
            corpus.conflicts.append(conflict(first))
    return count_kept(rows, list(kept.values()), corpus)


def once_aggregate(rows: list[Row], corpus: Corpus) -> list[Row]:
    by_run: dict[tuple[int, str | None], list[Row]] = {}
    for row in rows:
        by_run.setdefault((row.submission_id, text_of(row.values.get("runner"))), []).append(row)
    kept: list[Row] = []
    for same in by_run.values():
        kept.append(min(same, key=aggregate_order))
        if len({row.content for row in same}) > 1:
            corpus.conflicts.append(conflict(kept[-1]))
    return count_kept(rows, kept, corpus)


def aggregate_order(row: Row) -> tuple[Json, ...]:
    values = row.values
    score = number(values.get("score"))
    return (
        values.get("mode") != "leaderboard",
        values.get("passed") is not True,
        score is None,
        score or 0,
        row.content,
    )


def conflict(row: Row) -> Json:
    return {"source": SOURCE, "locator": row.locator, "item": str(row.number), "submission_id": row.submission_id}


def count_kept(rows: list[Row], kept: list[Row], corpus: Corpus) -> list[Row]:
    identities = {id(row) for row in kept}
    for row in rows:
        corpus.count(row.locator, "kept" if id(row) in identities else "duplicate")
    return [row for row in rows if id(row) in identities]


# --- sources of submissions -----------------------------------------------------------------------------------


def source_bytes(code: Json) -> bytes:
    """The bytes of a source: text, binary, or the hexadecimal form that the database prints."""
    data = code.encode() if isinstance(code, str) else bytes(code or b"")
    if re.fullmatch(rb"\\x([0-9a-fA-F]{2})+", data):
        return bytes.fromhex(data[2:].decode())
    return data


@dataclass
class Sources:
    """What is known of the sources of submissions: (digest, size), and who was read and has none."""

    known: dict[int, tuple[str, int]]
    read: dict[int, tuple[str, int]]
    looked_at: set[int]

    def find(self, submission_id: int) -> tuple[str, int] | None:
        return self.read.get(submission_id) or self.known.get(submission_id)

    def final(self, submission_id: int) -> bool:
        return self.find(submission_id) is not None or submission_id in self.looked_at


def find_sources(folder: Path, rows: list[Row], code: bool) -> Sources:
    sources = Sources({}, {}, set())
    for path in (folder / "source_digests.parquet", folder.parent / "source_digests.parquet"):
        for row in pq.read_table(path).to_pylist() if path.exists() else []:
            sources.known.setdefault(integer_id(row["submission_id"]), (row["content_digest"], row["size_bytes"]))
    for row in rows if code else []:
        sources.looked_at.add(row.submission_id)
        data = source_bytes(row.values.get("code"))
        if data:
            found = (sha256(data), len(data))
            sources.read[row.submission_id] = min(found, sources.read.get(row.submission_id, found))
    return sources


def valid_rows(folder: Path, facts: Json, code: bool, corpus: Corpus) -> tuple[list[Row], list[Row]]:
    """The valid rows of all files in their order, per case and aggregate; the others become rejects."""
    names = board_names(folder, facts)
    per_case: list[Row] = []
    aggregate: list[Row] = []
    for path in sorted(folder.glob("*.parquet"), key=file_order):
        if path.stem in ("leaderboards", "source_digests"):
            continue
        file_digest = sha256(path.read_bytes())
        fields = set(pq.read_schema(path).names)
        has_cases = "run_result" in fields
        for index, values in enumerate(records(path, code)):
            try:
                if "submission_id" not in fields or not fields & {"run_result", "score"}:
                    raise Rejected("UNKNOWN_SCHEMA")
                row = valid_row(path.name, file_digest, index, values, names, has_cases)
            except Rejected as reason:
                corpus.reject(SOURCE, path.name, str(index), reason)
                corpus.count(path.name, "rejected")
            else:
                (per_case if has_cases else aggregate).append(row)
    return per_case, aggregate


def deadlines(folder: Path) -> dict[str, datetime | None]:
    path = folder / "leaderboards.parquet"
    if not path.exists() or "deadline" not in pq.read_schema(path).names:
        return {}
    table = pq.read_table(path)
    return dict(zip(table["name"].to_pylist(), column_values(table["deadline"]), strict=True))
