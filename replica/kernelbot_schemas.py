"""Arrow schemas of the KernelBot files, and the ways in which the older exports differ from the newest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

BENCHMARK_FIELDS = ("mean", "runs", "best", "worst", "std", "err")
RESULT_FIELDS = [
    "benchmark-count",
    *(f"benchmark.{n}.{name}" for n in range(18) for name in sorted((*BENCHMARK_FIELDS, "report", "spec"))),
    "check",
    "test-count",
    *(f"test.{n}.{name}" for n in range(3) for name in ("message", "spec", "status")),
]


def struct(**fields: pa.DataType) -> pa.DataType:
    """The struct type with these fields."""
    return pa.struct(list(fields.items()))


COMPILATION = struct(
    command=pa.string(),
    exit_code=pa.int64(),
    nvcc_found=pa.bool_(),
    nvcc_version=pa.string(),
    stderr=pa.string(),
    stdout=pa.string(),
    success=pa.bool_(),
)
META = struct(
    command=pa.string(),
    duration=pa.float64(),
    exit_code=pa.int64(),
    stderr=pa.string(),
    stdout=pa.string(),
    success=pa.bool_(),
)
SYSTEM = struct(
    cpu=pa.string(),
    gpu=pa.string(),
    platform=pa.string(),
    torch=pa.string(),
    device_count=pa.int64(),
    runtime=pa.string(),
)
NAIVE = pa.timestamp("us")
ZONED = pa.timestamp("us", "UTC")

PER_CASE = pa.schema(
    [
        ("submission_id", pa.int64()),
        ("leaderboard_id", pa.int64()),
        ("user_id", pa.int64()),
        ("submission_time", NAIVE),
        ("file_name", pa.string()),
        ("code", pa.string()),
        ("code_id", pa.int64()),
        ("run_id", pa.int64()),
        ("run_start_time", NAIVE),
        ("run_end_time", NAIVE),
        ("run_mode", pa.string()),
        ("run_score", pa.float64()),
        ("run_passed", pa.bool_()),
        ("run_result", pa.struct([(name, pa.string()) for name in RESULT_FIELDS])),
        ("run_compilation", COMPILATION),
        ("run_meta", META),
        ("run_system_info", SYSTEM),
    ]
)
AGGREGATE = pa.schema(
    [
        ("submission_id", pa.int64()),
        ("leaderboard_id", pa.int64()),
        ("problem_name", pa.large_string()),
        ("user_id", pa.large_string()),
        ("user_name", pa.large_string()),
        ("code_id", pa.int64()),
        ("file_name", pa.large_string()),
        ("submission_time", ZONED),
        ("status", pa.large_string()),
        ("score", pa.float64()),
        ("passed", pa.bool_()),
        ("mode", pa.large_string()),
        ("runner", pa.large_string()),
        ("code", pa.large_string()),
    ]
)
LEADERBOARDS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("deadline", ZONED),
        ("lang", pa.string()),
        ("description", pa.string()),
        ("reference", pa.string()),
        ("gpu_types", pa.list_(pa.string())),
    ]
)


def to_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Like `pa.array`, but a text column also takes bytes, as they are: upstream has text that is not UTF-8."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text and any(isinstance(value, bytes) for value in values):
        raw = [value.encode() if isinstance(value, str) else value for value in values]
        return pa.array(raw, pa.binary() if pa.types.is_string(kind) else pa.large_binary()).view(kind)
    return pa.array(values, kind)


def to_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; absent keys are null, and a key that the schema lacks is an error."""
    for row in rows:
        if unknown := row.keys() - set(schema.names):
            raise ValueError(f"the schema has no column {sorted(unknown)}")
    return pa.table([to_array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)


def replace(table: pa.Table, name: str, values: Any) -> pa.Table:
    """The table with other values, maybe of another type, in the column `name`."""
    return table.set_column(table.schema.get_field_index(name), name, values)


def hex_text(text: str | bytes | None) -> str | None:
    r"""`\x…`, the database's text form of bytes."""
    return None if text is None else "\\x" + (text.encode() if isinstance(text, str) else text).hex()


def _successful(table: pa.Table) -> pa.Table:
    """A pandas export: an index column, code as bytes, long strings, nothing in run_compilation."""
    for name in ("file_name", "run_mode"):
        table = replace(table, name, table[name].cast(pa.large_string()))
    table = replace(table, "code", table["code"].cast(pa.binary()))
    table = replace(table, "run_compilation", pa.nulls(table.num_rows))
    return table.append_column("__index_level_0__", pa.array(range(table.num_rows), pa.int64()))


def _deduplicated(table: pa.Table) -> pa.Table:
    """An old export: code as hex text, and no report among the fields of run_result."""
    table = replace(table, "code", pa.array([hex_text(text) for text in table["code"].to_pylist()], pa.string()))
    kind = pa.struct([(name, pa.string()) for name in RESULT_FIELDS if not name.endswith(".report")])
    chunks = []
    for chunk in table["run_result"].chunks:
        leaves = [pc.struct_field(chunk, name) for name in (field.name for field in kind)]
        chunks.append(pa.StructArray.from_arrays(leaves, fields=list(kind), mask=chunk.is_null()))
    return replace(table, "run_result", pa.chunked_array(chunks, kind))


def _deduplicated_successful(table: pa.Table) -> pa.Table:
    """An old export of pandas categories: dictionary-encoded text."""
    table = _deduplicated(table)
    for name in ("file_name", "run_mode"):
        table = replace(table, name, table[name].dictionary_encode().unify_dictionaries())
    return table.append_column("__index_level_0__", pa.array(range(table.num_rows), pa.int64()))


SUBSETS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "successful_submissions": _successful,
    "deduplicated_submissions": _deduplicated,
    "deduplicated_successful_submissions": _deduplicated_successful,
}
