"""Contract tables in a database from the few columns that a test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.contracts import RESULTS, TABLES, Column, Table
from warehouse.database import connect

Row = dict[str, Any]

_DEFAULTS: dict[str, Any] = {
    "VARCHAR": "",
    "BIGINT": 0,
    "DOUBLE": 0.0,
    "BOOLEAN": False,
    "TIMESTAMPTZ": datetime(2025, 1, 1, tzinfo=UTC),
    "VARCHAR[]": [],
}


def warehouse(rows: Mapping[str, Sequence[Row]], *, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory with the named tables of the contract (or `results`), holding the rows given by name."""
    connection = connect(threads=threads)
    for name, given in rows.items():
        connection.execute(table(name).ddl())
        fill(connection, name, given)
    return connection


def table(name: str) -> Table:
    """A table of the contract, or the internal `results`."""
    return RESULTS if name == RESULTS.name else TABLES[name]


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Row]) -> None:
    """Insert rows; a column that is not given is null where it may be, else empty, zero, false or the start of 2025.

    A time may be given as text, in UTC where it states no zone.
    """
    connection.register("rows_given", arrow(table(name), rows))
    connection.execute(f'insert into "{name}" select * from rows_given')
    connection.unregister("rows_given")


def arrow(contract: Table, rows: Sequence[Row]) -> pa.Table:
    """The rows as an Arrow table of the contract, with the defaults of `fill`."""
    unknown = {column for row in rows for column in row} - set(contract.names)
    if unknown:
        raise KeyError(f"{contract.name} has no column {', '.join(sorted(unknown))}")
    complete = [{column.name: _value(column, row) for column in contract.columns} for row in rows]
    return pa.Table.from_pylist(complete, schema=contract.arrow_schema())


def _value(column: Column, row: Row) -> Any:
    value = row.get(column.name, None if column.nullable else _DEFAULTS[column.type])
    if column.type == "TIMESTAMPTZ" and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=moment.tzinfo or UTC)
    return value
