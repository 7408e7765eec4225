"""The account of a reading: what was read, kept, rejected and odd, as `source_files`, `rejects` and `drift`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from assets.sol_execbench.definitions import SOURCE
from assets.sol_execbench.read import Answer, Content, Rejected, check_form, content, raw, read, sound_text
from assets.sol_execbench.submissions import METRICS
from warehouse.contracts import TABLES, Table
from warehouse.identity import digest

_LONGEST_DETAIL = 300
_ANSWERS_AT_HAND = 64
# Fields of which tables are made: told when no row has them any more. The others are known, and come and go.
_NEEDED = {
    "listing": {"id", "name"},
    "definition": {"id", "name", "tags", "axes", "inputs", "outputs", "workloads", "sol_is_dummy"},
    "submissions": {
        *("id", "username", "kernel_id", "submission_mode", "status", "is_correct", "gpu_type", "worker_id"),
        *("evaluation_stack_version", "is_disqualified", "submitted_at", "finished_at", "original_filename"),
        *METRICS,
    },
}
_KNOWN = {
    "listing": _NEEDED["listing"] | {"title", "gpu_types", "tags", "submission_count"},
    "definition": _NEEDED["definition"]
    | {"title", "description", "gpu_types", "op_type", "reference", "baseline", "baseline_latency_ms", "latency_unit"},
    "submissions": _NEEDED["submissions"]
    | {"type", "user_id", "kernel_name", "kernel_title", "benchmark_results", "error_log", "disqualified_at"},
}
_COME_AND_GO = ("collection_", "disqualification_", "review_")


class Columns:
    """Rows of one table on their way to Arrow columns; a column of one value throughout is named beforehand."""

    def __init__(self, table: Table, **constants: Any) -> None:
        self._schema = table.arrow_schema()
        self._constants = constants
        self._names = [name for name in table.names if name not in constants]
        self._pick = itemgetter(*self._names)
        self._rows: list[tuple[Any, ...]] = []

    def append(self, row: dict[str, Any]) -> None:
        """Adds a row, which must have every column that is not constant."""
        self._rows.append(self._pick(row))

    def table(self) -> pa.Table:
        """The rows as an Arrow table of the contract."""
        values = dict(zip(self._names, zip(*self._rows, strict=True), strict=False))
        columns = [
            pa.repeat(pa.scalar(self._constants[field.name], field.type), len(self._rows))
            if field.name in self._constants
            else pa.array(values.get(field.name, ()), field.type)
            for field in self._schema
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)


class Place(NamedTuple):
    """Where a row stands: its answer, its number there from 0, and its path."""

    answer: Answer
    number: int
    item: str

    @property
    def order(self) -> tuple[int, str, str, int]:
        """What decides between equal copies: the earlier page has the row."""
        return self.answer.page, self.answer.locator, self.answer.content_digest, self.number


@dataclass
class _Count:
    read: int = 0
    duplicate: int = 0
    rejected: int = 0


class Ledger:
    """Every row of every answer is kept, a duplicate or rejected; every surprise is told once."""

    def __init__(self, answers: Iterable[Answer], fetched_at: datetime, revision: str | None, parser: str) -> None:
        self._parser = parser
        self._fetched_at = fetched_at
        self._revision = revision
        self._counts = {answer: _Count() for answer in answers}
        self._rejects = Columns(TABLES["rejects"])
        # (locator or None, field, kind, detail) to the first locator by name.
        self._drift: dict[tuple[str | None, str, str, str], str] = {}
        self._again: dict[Answer, list[tuple[str, Any]]] = {}
        self._fields: dict[str, set[str]] = defaultdict(set)

    def read(self, answer: Answer) -> Content:
        """The rows of an answer, counted; what is new in its envelope is told.

        Raises:
            UnreadableAnswer: where there are no rows to be had.
        """
        found = read(answer)
        self._counts[answer].read += len(found.rows)
        for name in found.unknown:
            self.note(answer.locator, name, "added", f"a new field beside the rows of a {answer.kind} answer")
        return found

    def sound(self, answer: Answer, found: Content) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The rows whose form is sound; the others are rejected, and fields that nobody knows are told."""
        known, seen = _KNOWN[answer.kind], self._fields[answer.kind]
        for index, (item, row) in enumerate(found.rows):
            place = Place(answer, index, item)
            try:
                check_form(row, found.suspect)
            except Rejected as reason:
                self.reject(place, reason, row)
                continue
            seen.update(row)
            for name in row.keys() - known:
                if not name.startswith(_COME_AND_GO):
                    self.note(answer.locator, name, "added", f"a new field of the rows of a {answer.kind} answer")
            yield place, row

    def reject(self, place: Place, reason: Rejected, row: Any) -> None:
        """Puts a row that could not be normalised aside, with the reason."""
        self._counts[place.answer].rejected += 1
        self._rejects.append(
            {
                "content_digest": place.answer.content_digest,
                "locator": place.answer.locator,
                "item": place.item,
                "reason": reason.reason,
                "detail": _cut(reason.detail),
                "raw": raw(row),
            }
        )

    def first(self, what: str, places: Sequence[Place]) -> Place:
        """The copy of a row that is kept; the others are duplicates, and a conflict where they differ.

        Copies are rare, so that their content is read again only when there are some.

        Args:
            what: the row, for a person.
            places: where its copies stand, at least one.
        """
        if len(places) == 1:
            return places[0]
        copies = {place: content(self.row(place)) for place in places}
        kept = min(copies, key=lambda place: (digest(copies[place]), place.order))
        for place in places:
            if place != kept:
                self._counts[place.answer].duplicate += 1
        others = sorted({place.answer.locator for place in copies if copies[place] != copies[kept]})
        if others:
            detail = f"{what} says something else in {', '.join(others)}"
            self.note(kept.answer.locator, "id", "conflict", detail, each=True)
        return kept

    def row(self, place: Place) -> Any:
        """A row read again."""
        return self._rows_again(place.answer)[place.number][1]

    def _rows_again(self, answer: Answer) -> list[tuple[str, Any]]:
        # The pages of one kernel repeat each other; to keep more than those at hand would not be bounded.
        if answer not in self._again:
            if len(self._again) >= _ANSWERS_AT_HAND:
                self._again.clear()
            self._again[answer] = read(answer).rows
        return self._again[answer]

    def note(self, locator: str, field: str, kind: str, detail: str, *, each: bool = False) -> None:
        """Tells a surprise in form: once for all answers, at the first of them by name, or for `each` of them."""
        field, detail = _cut(field), _cut(detail)
        key = (locator if each else None, field, kind, detail)
        self._drift[key] = min(locator, self._drift.get(key, locator))

    def tables(self) -> dict[str, pa.Table]:
        """The tables `source_files`, `rejects` and `drift`."""
        files = Columns(
            TABLES["source_files"],
            source=SOURCE,
            revision=self._revision,
            verified=True,
            media_type="application/json",
            fetched_at=self._fetched_at,
            parser=self._parser,
        )
        for answer, count in self._counts.items():
            files.append(
                {
                    "content_digest": answer.content_digest,
                    "locator": answer.locator,
                    "size_bytes": answer.size_bytes,
                    "rows_read": count.read,
                    "rows_kept": count.read - count.duplicate - count.rejected,
                    "rows_duplicate": count.duplicate,
                    "rows_rejected": count.rejected,
                }
            )
        self._tell_missing_fields()
        drift = Columns(TABLES["drift"], source=SOURCE, first_seen_at=self._fetched_at)
        for locator, field, kind, detail in sorted((locator, *key[1:]) for key, locator in self._drift.items()):
            drift.append({"locator": locator, "field": field, "kind": kind, "detail": detail})
        return {"source_files": files.table(), "rejects": self._rejects.table(), "drift": drift.table()}

    def _tell_missing_fields(self) -> None:
        for kind, seen in self._fields.items():
            first = min(answer.locator for answer in self._counts if answer.kind == kind)
            for name in _NEEDED[kind] - seen if seen else ():
                self.note(first, name, "missing", f"no row of any {kind} answer has this field")


def _cut(text: str) -> str:
    text = sound_text(text)
    return text if len(text) <= _LONGEST_DETAIL else text[:_LONGEST_DETAIL] + "…"
