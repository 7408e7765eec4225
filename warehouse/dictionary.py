"""The data dictionary, `docs/tables.md`, made of the contracts: `python -m warehouse.dictionary`."""

from __future__ import annotations

from pathlib import Path

from warehouse import files
from warehouse.contracts import SCHEMA_VERSION, TABLES

FILE = Path(__file__).resolve().parent.parent / "docs" / "tables.md"


def dictionary() -> str:
    """Every published table and column as Markdown."""
    lines = [
        "# Tables",
        "",
        f"Schema version {SCHEMA_VERSION}. Made from `warehouse/contracts.py` by `make docs`; edit there.",
        "",
        "The same names and types are in the DuckDB file and in the Parquet exports. JSON columns are canonical JSON",
        "text (RFC 8785). P is the key, ? may be null.",
        "",
    ]
    for table in TABLES.values():
        lines += [f"## {table.name}", "", table.description, "", "| column | type | | |", "|---|---|---|---|"]
        for column in table.columns:
            mark = " ".join(word for word, holds in (("P", column.key), ("?", column.nullable)) if holds)
            reference = f" → `{column.references}`" if column.references else ""
            lines.append(f"| `{column.name}` | {column.type} | {mark} | {column.description}{reference} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    files.write_bytes(FILE, dictionary().encode())
