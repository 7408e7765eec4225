"""Rows of SOL-ExecBench's tables on their way to Arrow."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pyarrow as pa

from assets.sol_execbench.terms import SOURCE
from warehouse.contracts import RESULTS, TABLES, Table

# Rows become Arrow when there are so many: as Python's objects they need many times the memory.
_CHUNK_ROWS = 4096
_UNKNOWN_LICENCE = {"license_declared": "unknown", "license_concluded": "unknown"}
# Of each table that one kernel's answers make on their own, the columns that have one value throughout.
_CONSTANTS: dict[str, dict[str, Any]] = {
    "problems": {},
    "cases": {},
    "submissions": {
        "source": SOURCE,
        "score_s": None,
        "source_digest": None,
        "source_bytes": None,
        "code_id": None,
        **_UNKNOWN_LICENCE,
    },
    "implementations": {"language": "unknown"},
    # The source gives ms; its own figure stays in native_metrics.
    "results": {
        "source": SOURCE,
        "case_index": None,
        "sample_count": None,
        "mean_ns": None,
        "min_ns": None,
        "max_ns": None,
        "std_ns": None,
        "score_s": None,
    },
    "source_files": {"source": SOURCE, "verified": True, "media_type": "application/json"},
    "rejects": {},
}
NAMES = tuple(_CONSTANTS)


class Columns:
    """Rows of one table on their way to Arrow columns; a column of one value throughout is named beforehand."""

    def __init__(self, table: Table, **constants: Any) -> None:
        self._schema = table.arrow_schema()
        self._constants = constants
        self._names = [name for name in table.names if name not in constants]
        self._pick = itemgetter(*self._names)
        self._rows: list[tuple[Any, ...]] = []
        self._chunks: list[pa.Table] = []
        self.count = 0

    def append(self, row: dict[str, Any]) -> None:
        """Adds a row, which must have every column that is not constant."""
        self._rows.append(self._pick(row))
        self.count += 1
        if len(self._rows) >= _CHUNK_ROWS:
            self._chunks.append(self._as_arrow())

    def table(self) -> pa.Table:
        """The rows as an Arrow table of the contract."""
        if self._rows or not self._chunks:
            self._chunks.append(self._as_arrow())
        return pa.concat_tables(self._chunks)

    def _as_arrow(self) -> pa.Table:
        values = dict(zip(self._names, zip(*self._rows, strict=True), strict=False))
        columns = [
            pa.repeat(pa.scalar(self._constants[field.name], field.type), len(self._rows))
            if field.name in self._constants
            else pa.array(values.get(field.name, ()), field.type)
            for field in self._schema
        ]
        self._rows = []
        return pa.Table.from_arrays(columns, schema=self._schema)


class Tables:
    """All tables that kernels make on their own, each kernel's rows after those of the one before."""

    def __init__(self) -> None:
        self._columns = {name: Columns(_contract(name), **constants) for name, constants in _CONSTANTS.items()}

    def append(self, name: str, row: dict[str, Any]) -> None:
        """Adds a row to a table."""
        self._columns[name].append(row)

    def counts(self) -> dict[str, int]:
        """Rows of each table so far."""
        return {name: columns.count for name, columns in self._columns.items()}

    def tables(self) -> dict[str, pa.Table]:
        """All rows, as Arrow tables of the contract."""
        return {name: columns.table() for name, columns in self._columns.items()}


def _contract(name: str) -> Table:
    return RESULTS if name == "results" else TABLES[name]
