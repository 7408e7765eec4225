"""SQL by name: one statement a file below `sql/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent.parent / "sql"


@cache
def statement(name: str) -> str:
    """Text of `sql/<name>.sql`; a name may have folders, as in `kernelbot/runs`.

    Raises:
        FileNotFoundError: where there is no such file.
    """
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def names(folder: str) -> list[str]:
    """Names of the statements in one folder of `sql/`, sorted."""
    return sorted(f"{folder}/{path.stem}" for path in (_FOLDER / folder).glob("*.sql"))
