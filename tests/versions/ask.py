"""Asks a DuckDB file what it is asked, with whatever release of DuckDB it runs under.

    python ask.py FILE < questions.json

`questions.json` has statements by name; the answer has, by that name, how many rows there are and their SHA-256.
Nothing but DuckDB is needed.
"""

from __future__ import annotations

import hashlib
import json
import sys

import duckdb


def answers(path: str, questions: dict[str, str]) -> dict[str, list[object]]:
    """For each statement the number of its rows, and the digest of them as JSON, times in microseconds."""
    found: dict[str, list[object]] = {}
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("set timezone = 'UTC'")
        for name, statement in questions.items():
            columns = connection.execute(f"describe {statement}").fetchall()
            shown = ", ".join(
                f'epoch_us("{column}")' if kind == "TIMESTAMP WITH TIME ZONE" else f'"{column}"'
                for column, kind, *_ in columns
            )
            rows = connection.execute(f"select {shown} from ({statement})").fetchall()
            # The order of equal rows is nobody's promise.
            lines = sorted(json.dumps(row) for row in rows)
            found[name] = [len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()]
    return found


if __name__ == "__main__":
    json.dump({"version": duckdb.__version__, **answers(sys.argv[1], json.load(sys.stdin))}, sys.stdout)
