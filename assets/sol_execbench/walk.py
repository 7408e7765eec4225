"""The walk of one SOL-ExecBench kernel: its definition, its submissions as far as they can be reached, its boards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from assets.sol_execbench.asking import AnswerError, Api, NotThereError
from assets.sol_execbench.leaderboards import read_leaderboards
from assets.sol_execbench.read import Answer, Content, UnreadableAnswer, content, read, sound_text

PAGE = 50
LAST_OFFSET = 50
# In the order in which a list is narrowed; each of them reaches as far again.
FILTERS = ("evaluation_stack_version", "status", "gpu_type")

_REACH = LAST_OFFSET + PAGE
_WALKS = 3
_LONGEST_NAME = 100
_MOST_VALUES = 20
_MOST_BOARDS = 40
_MOST_PAGES = 200


class KernelError(AnswerError):
    """An answer about a kernel that is not to be had: `locator` is its name, `detail` what is wrong."""

    def __init__(self, locator: str, detail: str) -> None:
        super().__init__(f"{locator}: {detail}")
        self.locator = locator
        self.detail = detail


class FilterValues:
    """Values of the filters that submissions have had, so that a list too long to reach can be asked for by them."""

    def __init__(self, known: Mapping[str, Iterable[str]] | None = None) -> None:
        self._known = {name: set((known or {}).get(name, ())) for name in FILTERS}

    def note(self, name: str, value: Any) -> None:
        """Remember a value, if it can be one."""
        known = self._known[name]
        if _is_text(value) and len(known) < _MOST_VALUES:
            known.add(value)

    def of(self, name: str) -> list[str]:
        """Values of a filter, sorted."""
        return sorted(self._known[name])

    def as_record(self) -> dict[str, list[str]]:
        """All values as JSON."""
        return {name: self.of(name) for name in FILTERS}


@dataclass(frozen=True)
class _Page:
    """A page: its bytes, what its list has in all, and what tells each of its rows from others."""

    data: bytes
    total: int
    keys: list[str]


def ask(api: Api, locator: str, segments: Sequence[str], query: Mapping[str, str]) -> tuple[bytes, Content | None]:
    """An answer that can be read, and what it says; a leaderboard's content is None. A bad one is asked for once more.

    Bytes that are no UTF-8 may have been spoilt on their way; where they come again, the reader knows what to do.

    Raises:
        KernelError: where there is no such answer.
        NotThereError: where the service says that there is no such thing.
        ServiceError: where no further request should be made.
    """
    why = ""
    for again in (False, True):
        try:
            data = api.get(segments, query)
            if not again and not _is_utf8(data):
                continue
            answer = Answer.of(locator, data)
            if answer.kind == "leaderboard":
                read_leaderboards(answer)
                return data, None
            found = read(answer)
            if answer.kind != "definition" or isinstance(found.rows[0][1], dict):
                return data, found
            why = "the answer has no definition"
        except NotThereError:
            raise
        except AnswerError as error:
            raise KernelError(locator, str(error)) from error
        except UnreadableAnswer as error:
            why = error.detail
    raise KernelError(locator, why)


class KernelWalk:
    """The answers about one kernel, by locator, as they are found.

    Args:
        api: the client.
        kernel_id: upstream's id.
        gpu_types: GPUs that the listing names for it.
        values: of filters; more are noted.
    """

    def __init__(self, api: Api, kernel_id: int, gpu_types: Iterable[str], values: FilterValues) -> None:
        self._api = api
        self._id = str(kernel_id)
        self._values = values
        self._answers: dict[str, bytes] = {}
        self._total = 0
        self._pages = 0
        self._asked = 0
        self._seen: set[str] = set()
        self._boards: set[tuple[str, str]] = set()
        for gpu in gpu_types:
            values.note("gpu_type", gpu)

    @property
    def obtained(self) -> int:
        """Submissions that its pages showed."""
        return len(self._seen)

    def walk(self) -> dict[str, bytes]:
        """All answers about the kernel; what the service says is not there is not among them.

        Raises:
            KernelError: where one is not to be had.
            ServiceError: where no further request should be made.
        """
        name = f"kernels/{self._id}.json"
        try:
            self._answers[name], _ = ask(self._api, name, ["kernels", self._id], {})
        except NotThereError:
            # The reader tells that a listed kernel has no definition.
            return {}
        self._submissions()
        for gpu, stack in sorted(self._boards)[:_MOST_BOARDS]:
            self._board(gpu, stack)
        return self._answers

    def _submissions(self) -> None:
        self._total = self._list({})
        if self._total > _REACH:
            self._narrower({}, FILTERS)

    def _narrower(self, query: dict[str, str], filters: Sequence[str]) -> None:
        """Walk a list that is longer than can be reached by the values of the next filter."""
        name, *others = filters
        done: set[str] = set()
        # A page may show a value that nobody knew before.
        while left := [value for value in self._values.of(name) if value not in done]:
            if len(self._seen) >= self._total or self._asked >= _MOST_PAGES:
                return
            done.add(left[0])
            narrower = {**query, name: left[0]}
            if self._list(narrower) > _REACH and others:
                self._narrower(narrower, others)

    def _list(self, query: dict[str, str]) -> int:
        """Walk the pages of a list until they belong together, and keep those that say something new; its total."""
        pages: list[_Page] = []
        rows: set[str] = set()
        for _ in range(_WALKS):
            before = rows
            pages = list(self._pages_of(query))
            rows = {key for page in pages for key in page.keys}
            # A list that moved while it was walked may have shown a row twice, and another one never.
            total, *others = {page.total for page in pages}
            if not others and (len(rows) >= min(total, _REACH) or rows == before):
                break
        for page in pages:
            if not query or not self._seen.issuperset(page.keys):
                self._pages += 1
                number = "" if self._pages == 1 else f".{self._pages}"
                self._answers[f"submissions/{self._id}{number}.json"] = page.data
                self._seen.update(page.keys)
        return max(page.total for page in pages)

    def _pages_of(self, query: Mapping[str, str]) -> Iterator[_Page]:
        offset = 0
        while offset <= LAST_OFFSET:
            page = self._page(query, offset)
            yield page
            offset += len(page.keys)
            if not page.keys or offset >= page.total:
                return

    def _page(self, query: Mapping[str, str], offset: int) -> _Page:
        self._asked += 1
        name = f"submissions/{self._id}.json"
        where = {"kernel_id": self._id, "limit": str(PAGE), "offset": str(offset), **query}
        try:
            data, found = ask(self._api, name, ["submissions"], where)
        except NotThereError as error:
            raise KernelError(name, str(error)) from error
        rows = [row for _, row in found.rows] if found else []
        for row in rows:
            if isinstance(row, dict):
                self._note(row)
        total = found.total if found and isinstance(found.total, int) else len(rows)
        return _Page(data, total, [_key(row) for row in rows])

    def _note(self, row: Mapping[str, Any]) -> None:
        for name in FILTERS:
            self._values.note(name, row.get(name))
        gpu, stack = row.get("gpu_type"), row.get("evaluation_stack_version")
        if _is_name(gpu) and _is_name(stack):
            self._boards.add((str(gpu), str(stack)))

    def _board(self, gpu: str, stack: str) -> None:
        name = f"leaderboards/{self._id}.{_plain(gpu)}.{_plain(stack, dots='.')}.json"
        segments = ["leaderboard", "kernel", self._id, gpu]
        try:
            self._answers[name], _ = ask(self._api, name, segments, {"evaluation_stack_version": stack})
        except NotThereError:
            # Where nothing is ranked there is no board.
            return


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_name(value: Any) -> bool:
    # What is no name of a path cannot be asked for.
    return _is_text(value) and value not in (".", "..")


def _is_text(value: Any) -> bool:
    """Whether a value is a text of some length that a request can bear: half a surrogate pair has no bytes."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and sound_text(value) == value


def _plain(name: str, dots: str = "%2E") -> str:
    """A name as a part of a locator: in it a slash, a dot before the last part, or a space would mislead."""
    return quote(name, safe="", errors="replace").replace(".", dots)


def _key(row: Any) -> str:
    """What tells a row from others: its id, else all that it says."""
    identifier = row.get("id") if isinstance(row, dict) else None
    return f"id {identifier}" if isinstance(identifier, int | str) else content(row)
