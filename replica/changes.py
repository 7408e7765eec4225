"""What happens upstream from one night to the next, or in the midst of a pull: changes to a folder that is served.

Every file is replaced as a whole, so that a request finds the old one or the new one.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from replica.sol_service import LARGEST_PAGE, saved_pages
from replica.sol_traps import submission

# Without a zone, as the API's times are.
_FIRST_ARRIVAL = datetime(2026, 9, 1)


def file_changes(folder: Path, name: str) -> None:
    """A data file of KernelBot is exported again without its last row, and `main` moves.

    Args:
        folder: of the corpus.
        name: of the file, with its suffix.
    """
    path = folder / "kernelbot" / name
    table = pq.read_table(path)
    part = folder / f"{name}.part"
    pq.write_table(table.slice(0, max(0, table.num_rows - 1)), part)
    part.replace(path)


def submissions_arrive(
    folder: Path, kernel_id: int, count: int = 1, *, counted: bool = True, **values: Any
) -> list[int]:
    """A kernel gets new submissions, which come first on its pages; their ids, the newest first.

    Args:
        folder: of the corpus.
        kernel_id: of a kernel with a definition.
        count: how many.
        counted: whether the listing's `submission_count` grows as well.
        values: fields of the submissions.
    """
    rows = _rows(folder, kernel_id)
    definition = json.loads((folder / f"sol_execbench/kernels/{kernel_id}.json").read_text(encoding="utf-8"))["data"]
    known = [row["id"] for row in map(json.loads, rows) if isinstance(row, dict) and isinstance(row.get("id"), int)]
    first = 1 + max(known, default=1000 * kernel_id)
    ids = list(range(first, first + count))
    for number in ids:
        time = (_FIRST_ARRIVAL + timedelta(seconds=number % 1_000_000)).isoformat(timespec="milliseconds")
        rows.insert(0, json.dumps(submission(definition, id=number, submitted_at=time) | values))
    _write(folder, kernel_id, rows, count if counted else 0)
    return ids[::-1]


def submission_goes(folder: Path, kernel_id: int, place: int = 0, *, counted: bool = True) -> None:
    """The submission at a place, 0 for the newest, is no longer on the kernel's pages."""
    rows = _rows(folder, kernel_id)
    del rows[place]
    _write(folder, kernel_id, rows, -1 if counted else 0)


def submission_changes(folder: Path, kernel_id: int, submission_id: int, **values: Any) -> None:
    """Fields of a submission change, as when it is disqualified; the listing does not show it."""
    rows = _rows(folder, kernel_id)
    for place, row in enumerate(map(json.loads, rows)):
        if isinstance(row, dict) and row.get("id") == submission_id:
            rows[place] = json.dumps(row | values)
    _write(folder, kernel_id, rows, 0)


def _rows(folder: Path, kernel_id: int) -> list[str]:
    return [row for page in saved_pages(folder / "sol_execbench" / "submissions", kernel_id) for row in page.rows]


def _write(folder: Path, kernel_id: int, rows: list[str], more: int) -> None:
    """Writes a kernel's rows as pages, and adds `more` to what the listing counts."""
    pages = folder / "sol_execbench" / "submissions"
    old = {page.path for page in saved_pages(pages, kernel_id)}
    for number, start in enumerate(range(0, max(1, len(rows)), LARGEST_PAGE), start=1):
        shown = ", ".join(rows[start : start + LARGEST_PAGE])
        envelope = json.dumps({"total": len(rows), "offset": start, "limit": LARGEST_PAGE})[1:]
        path = pages / (f"{kernel_id}.json" if number == 1 else f"{kernel_id}.{number}.json")
        _replace(path, '{"data": {"submissions": [' + shown + "], " + envelope + "}")
        old.discard(path)
    for path in old:
        path.unlink()
    listing = folder / "sol_execbench" / "kernels.json"
    answer = json.loads(listing.read_text(encoding="utf-8"))
    for entry in answer["data"]["kernels"]:
        if entry["id"] == kernel_id:
            entry["submission_count"] += more
    if more:
        _replace(listing, json.dumps(answer, indent=1, ensure_ascii=False))


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(text.encode("utf-8", "surrogateescape"))
    part.replace(path)
