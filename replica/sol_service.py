"""SOL-ExecBench's side of the replica: the saved answers of a folder, and the pages that the API would cut of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replica.answers import Answer, json_answer

PREFIX = "/benchmarks/sol-execbench/api"
LARGEST_PAGE = 50
LAST_OFFSET = 50
_DEFAULT_PAGE = 20
_FILTERS = ("gpu_type", "evaluation_stack_version", "status")
_SAVED = (
    (re.compile(r"/kernels"), "kernels.json"),
    (re.compile(r"/kernels/(\d{1,18})"), "kernels/{}.json"),
    (re.compile(r"/collections/(\d{1,18})"), "collections/{}.json"),
)
_LEADERBOARD = re.compile(r"/leaderboard/kernel/(\d{1,18})/([\w-]{1,60})")
_STACK = re.compile(r"[\w-][\w.-]{0,40}")
_LIST_STARTS = re.compile(r'"submissions"\s*:\s*\[')
_BETWEEN_ROWS = re.compile(r"[\s,]*")

Query = Mapping[str, list[str]]


@dataclass(frozen=True)
class SavedPage:
    """One saved page of submissions: its text, the text of each row, and where in the whole list it stands."""

    path: Path
    text: str
    rows: tuple[str, ...]
    offset: int
    total: int


class SolService:
    """Answers from `folder`, which is laid out as saved answers are; it is read anew for every request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def answer(self, path: str, query: Query) -> Answer:
        """The answer to a GET. `path`: what follows the API's own path."""
        if path == "/submissions":
            return self._submissions(query)
        for pattern, name in _SAVED:
            if match := pattern.fullmatch(path):
                return self._saved(name.format(*match.groups()))
        if match := _LEADERBOARD.fullmatch(path):
            stack = query.get("evaluation_stack_version", [""])[-1]
            if stack and not _STACK.fullmatch(stack):
                return _error(400, "evaluation_stack_version is not a version")
            names = (
                [f"leaderboards/{match[1]}.{match[2]}.{stack}.json"] if stack else self._of_any_stack(*match.groups())
            )
            return self._saved(names[-1]) if names else _error(404, "not found")
        return _error(404, "not found")

    def _of_any_stack(self, kernel: str, gpu: str) -> list[str]:
        return sorted(f"leaderboards/{path.name}" for path in self._folder.glob(f"leaderboards/{kernel}.{gpu}.*.json"))

    def _saved(self, name: str) -> Answer:
        path = self._folder / name
        return _text_answer(path.read_bytes()) if path.is_file() else _error(404, "not found")

    def _submissions(self, query: Query) -> Answer:
        given = {name: values[-1] for name, values in query.items()}
        kernel = given.get("kernel_id", "")
        numbers = [given.get("offset", "0"), given.get("limit", str(_DEFAULT_PAGE))]
        if not re.fullmatch(r"\d{1,18}", kernel) or not all(re.fullmatch(r"\d{1,9}", number) for number in numbers):
            return _error(400, "kernel_id, offset and limit must be whole numbers")
        offset, limit = int(numbers[0]), min(int(numbers[1]), LARGEST_PAGE)
        wanted = {name: given[name] for name in _FILTERS if name in given}
        pages = saved_pages(self._folder / "submissions", kernel)
        if not wanted and limit == LARGEST_PAGE:
            for page in pages:
                if page.offset == offset and len(page.rows) <= LARGEST_PAGE and offset <= LAST_OFFSET:
                    return _text_answer(page.text.encode("utf-8", "surrogateescape"))
        rows = [row for page in pages for row in page.rows if _passes(row, wanted)]
        total = pages[0].total if pages and not wanted else len(rows)
        shown = rows[offset : offset + limit] if offset <= LAST_OFFSET else []
        # Rows go out as they were saved: what is odd in one would not survive being read and written.
        envelope = json.dumps({"total": total, "offset": offset, "limit": limit})[1:]
        text = '{"data": {"submissions": [' + ", ".join(shown) + "], " + envelope + "}"
        return _text_answer(text.encode("utf-8", "surrogateescape"))


def saved_pages(folder: Path, kernel: int | str) -> list[SavedPage]:
    """The saved pages of a kernel in `folder`, in order."""
    further = sorted(folder.glob(f"{kernel}.*.json"), key=lambda path: int(path.name.split(".")[1]))
    paths = [path for path in (folder / f"{kernel}.json", *further) if path.is_file()]
    return [_saved_page(path, offset) for path, offset in zip(paths, itertools.count(0, LARGEST_PAGE), strict=False)]


def _saved_page(path: Path, offset: int) -> SavedPage:
    """A page at that offset, with its rows as texts, whatever is odd in them; without rows where it is no page."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    try:
        data = json.loads(text)["data"]
        count, total = len(data["submissions"]), data["total"]
    except (ValueError, TypeError, KeyError):
        return SavedPage(path, text, (), offset, 0)
    start = _LIST_STARTS.search(text)
    place = start.end() if start else len(text)
    rows: list[str] = []
    for _ in range(count):
        begin = _gap_end(text, place)
        place = json.JSONDecoder().raw_decode(text, begin)[1]
        rows.append(text[begin:place])
    return SavedPage(path, text, tuple(rows), offset, total)


def _gap_end(text: str, place: int) -> int:
    match = _BETWEEN_ROWS.match(text, place)
    return match.end() if match else place


def _passes(row: str, wanted: Mapping[str, str]) -> bool:
    if not wanted:
        return True
    value: Any = json.loads(row)
    return isinstance(value, dict) and all(value.get(name) == text for name, text in wanted.items())


def _text_answer(content: bytes) -> Answer:
    return Answer(200, {"Content-Type": "application/json; charset=utf-8"}, content)


def _error(status: int, message: str) -> Answer:
    return json_answer({"error": message}, status)
