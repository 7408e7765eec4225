"""A snapshot as the KernelIndex registry writes its catalogue: one compressed file of rows of ten tables.

Each table is a statement below `sql/exports/kernelindex`, whose columns are the keys of a row. Names of documents are
made by their sources' rooms, which the statements reach as functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import zstandard
from duckdb.func import FunctionNullHandling, PythonUDFType

from assets import naming
from warehouse.exports import Shown, json_object
from warehouse.statements import statement

FORM = "kernelindex"
FILE = "catalogue.jsonl.zst"
# The catalogue's tables in order, each with the table that is read through batch by batch; small ones are asked whole.
_DRIVEN: dict[str, str | None] = {
    "sources": None,
    "projects": None,
    "operations": None,
    "operation_aliases": None,
    "workloads": None,
    "implementations": "implementations",
    "benchmark_runs": "runs",
    "measurements": "runs",
    "record_events": None,
    "artifacts": "artifacts",
}
CATALOGUE_TABLES = tuple(_DRIVEN)
_LEVEL = 6
_TEXT = "VARCHAR"
_WHOLE = "BIGINT"
_JSON_FIELDS = {"axes", "labels", "tensors", "suite_cases"}
_IMPLEMENTATION = {"source": _TEXT, "problem": _TEXT, "submission_id": _WHOLE, "author_name": _TEXT}
# Functions that the statements reach, by the fields of the struct that each takes.
_FUNCTIONS: dict[Callable[[naming.Row], dict[str, Any] | str], dict[str, str]] = {
    naming.run_metadata: {
        "source": _TEXT, "problem": _TEXT, "primary_metric": _TEXT, "case_index": _WHOLE, "runner": _TEXT,
        "labels": _TEXT, "submission_id": _WHOLE, "author_name": _TEXT, "axes": _TEXT,
    },
    naming.protocol_metadata: {
        "source": _TEXT, "primary_metric": _TEXT, "primary_statistic": _TEXT, "version": _TEXT
    },
    naming.environment_metadata: {"source": _TEXT, "primary_metric": _TEXT, "runner": _TEXT, "version": _TEXT},
    naming.implementation_metadata: _IMPLEMENTATION,
    naming.implementation_slug: _IMPLEMENTATION,
    naming.workload_metadata: {
        "kind": _TEXT, "slug": _TEXT, "title": _TEXT, "external_id": _TEXT, "axes": _TEXT
    },
    naming.shape_summary: {"tensors": _TEXT, "suite_cases": _TEXT, "axes": _TEXT},
}  # fmt: skip


def write(shown: Shown, folder: Path) -> dict[str, int]:
    """Write the catalogue of the rows that are shown; the rows of each of its tables."""
    _prepare(shown.connection)
    rows = dict.fromkeys(_DRIVEN, 0)
    with (folder / FILE).open("wb") as file, zstandard.ZstdCompressor(_LEVEL).stream_writer(file) as stream:
        for name, driven in _DRIVEN.items():
            text = statement(f"exports/kernelindex/{name}")
            for piece in shown.lines(text, _line_of(name), driven):
                stream.write("".join(piece).encode())
                rows[name] += len(piece)
    return rows


def _line_of(name: str) -> Callable[[Mapping[str, str]], str]:
    return lambda columns: f"""concat('{{"table":"{name}","row":', {json_object(columns)}, '}}', chr(10))"""


def _prepare(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a connection what the statements of the catalogue use."""
    connection.execute(statement("exports/catalogue_macros"))
    for function, fields in _FUNCTIONS.items():
        _register(connection, function, fields)


def _register(
    connection: duckdb.DuckDBPyConnection,
    function: Callable[[naming.Row], dict[str, Any] | str],
    fields: Mapping[str, str],
) -> None:
    """Make a function known to SQL under its name; it gives text as it is, and all else as JSON."""

    @lru_cache(4096)
    def text(*values: Any) -> str:
        row = {
            name: _parsed(value) if name in _JSON_FIELDS else value for name, value in zip(fields, values, strict=True)
        }
        made = function(row)
        return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False, separators=(",", ":"))

    def texts(rows: pa.StructArray) -> pa.Array:
        columns = (column.to_pylist() for column in rows.flatten())
        return pa.array(map(text, *columns), pa.string())

    connection.create_function(
        function.__name__,
        texts,
        [duckdb.struct_type(dict(fields))],
        _TEXT,
        type=PythonUDFType.ARROW,
        null_handling=FunctionNullHandling.SPECIAL,
    )


@lru_cache(4096)
def _parsed(value: str | None) -> Any:
    return None if value is None else json.loads(value)
