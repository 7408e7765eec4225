"""The data dictionary, `docs/tables.md`, made of the contracts, codes and views: `python -m warehouse.dictionary`."""

from __future__ import annotations

from pathlib import Path

from warehouse import files
from warehouse.codes import CODES
from warehouse.contracts import PARQUET_ONLY, SCHEMA_VERSION, TABLES, Table
from warehouse.database import connect
from warehouse.statements import names, statement

FILE = Path(__file__).resolve().parent.parent / "docs" / "tables.md"


def dictionary() -> str:
    """Every published table and column, every code, and every view as Markdown."""
    lines = [
        "# Tables",
        "",
        f"Schema version {SCHEMA_VERSION}. Made by `make docs` from `warehouse/contracts.py`, `warehouse/codes.py` and",
        "`sql/views/`; edit there.",
        "",
        "The same names and types are in the DuckDB file and in the Parquet exports. JSON columns are canonical JSON",
        "text (RFC 8785). P is the key, ? may be null.",
        "",
    ]
    for table in TABLES.values():
        lines += _table(table)
    lines += ["# Texts", "", "In the Parquet exports only, and only where texts are mirrored.", ""]
    for table in PARQUET_ONLY.values():
        lines += _table(table)
    return "\n".join([*lines, *_codes(), *_views()])


def _table(table: Table) -> list[str]:
    lines = [f"## {table.name}", "", table.description, "", "| column | type | | |", "|---|---|---|---|"]
    for column in table.columns:
        mark = " ".join(word for word, holds in (("P", column.key), ("?", column.nullable)) if holds)
        reference = f" → `{column.references}`" if column.references else ""
        lines.append(f"| `{column.name}` | {column.type} | {mark} | {column.description}{reference} |")
    return [*lines, ""]


def _codes() -> list[str]:
    lines = ["# Codes", ""]
    for column, codes in CODES.items():
        lines += [f"## {column}", "", "| code | meaning |", "|---|---|"]
        lines += [f"| `{code}` | {meaning} |" for code, meaning in codes.items()]
        lines.append("")
    return lines


def _views() -> list[str]:
    lines = ["# Views", "", "In the DuckDB file only.", ""]
    with connect() as connection:
        for table in TABLES.values():
            connection.execute(table.ddl())
        for name in names("views"):
            text = statement(name)
            connection.execute(text)
            view = name.removeprefix("views/")
            about = " ".join(line.removeprefix("-- ") for line in text.split("create or replace")[0].splitlines())
            columns = connection.execute(f'describe "{view}"').fetchall()
            lines += [f"## {view}", "", about, "", ", ".join(f"`{column[0]}`" for column in columns), ""]
    return lines


if __name__ == "__main__":
    files.write_bytes(FILE, dictionary().encode())
