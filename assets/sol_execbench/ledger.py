"""The account of a reading: what was read, kept, rejected and odd, as `source_files`, `rejects` and `drift`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from assets.sol_execbench.read import Answer, Content, Rejected, check_form, content, raw, read, sound_text
from assets.sol_execbench.submissions import METRICS
from assets.sol_execbench.tables import Columns, Tables
from assets.sol_execbench.terms import SOURCE
from warehouse.contracts import TABLES
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


@dataclass
class Surprises:
    """What is odd in the form of answers, so kept that those of several readings make the ones of all together.

    Attributes:
        told: (locator or "", field, kind, detail) to the first locator by name; one that is told for each of its
            answers has its locator in the key.
        fields: names that rows of a kind of answer have had.
        first: the first answer of each kind, by name.
    """

    told: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
    fields: dict[str, set[str]] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def note(self, locator: str, name: str, kind: str, detail: str, *, each: bool = False) -> None:
        """Tells a surprise in form: once for all answers, at the first of them by name, or for `each` of them."""
        name, detail = _cut(name), _cut(detail)
        key = (locator if each else "", name, kind, detail)
        self.told[key] = min(locator, self.told.get(key, locator))

    def add(self, other: Surprises) -> None:
        """Take those of another reading along."""
        for key, locator in other.told.items():
            self.told[key] = min(locator, self.told.get(key, locator))
        for kind, names in other.fields.items():
            self.fields.setdefault(kind, set()).update(names)
        for kind, locator in other.first.items():
            self.first[kind] = min(locator, self.first.get(kind, locator))

    def as_record(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "told": sorted([*key, locator] for key, locator in self.told.items()),
            "fields": {kind: sorted(names & _NEEDED[kind]) for kind, names in self.fields.items()},
            "first": self.first,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Surprises:
        """From its JSON form."""
        return cls(
            {(where, name, kind, detail): locator for where, name, kind, detail, locator in record["told"]},
            {kind: set(names) for kind, names in record["fields"].items()},
            dict(record["first"]),
        )

    def drift(self, first_seen_at: datetime) -> pa.Table:
        """The table `drift`, once all readings are together."""
        for kind, seen in self.fields.items():
            for name in _NEEDED[kind] - seen:
                self.note(self.first[kind], name, "missing", f"no row of any {kind} answer has this field")
        drift = Columns(TABLES["drift"], source=SOURCE, first_seen_at=first_seen_at)
        for locator, name, kind, detail in sorted((locator, *key[1:]) for key, locator in self.told.items()):
            drift.append({"locator": locator, "field": name, "kind": kind, "detail": detail})
        return drift.table()


class Ledger:
    """Every row of every answer is kept, a duplicate or rejected; every surprise is told once.

    Args:
        answers: all that will be read.
        tables: take the rows that are rejected.
    """

    def __init__(self, answers: Iterable[Answer], tables: Tables) -> None:
        self.surprises = Surprises()
        self._tables = tables
        self._counts = {answer: _Count() for answer in answers}
        self._again: dict[Answer, list[tuple[str, Any]]] = {}
        self._fields: dict[str, set[str]] = defaultdict(set)
        for answer in self._counts:
            first = self.surprises.first.get(answer.kind, answer.locator)
            self.surprises.first[answer.kind] = min(first, answer.locator)

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
        kind = answer.kind
        seen, known = self._fields[kind], _KNOWN[kind]
        # Nearly all rows of an answer have the same fields.
        shapes: set[tuple[str, ...]] = set()
        for index, (item, row) in enumerate(found.rows):
            place = Place(answer, index, item)
            try:
                check_form(row, found.suspect)
            except Rejected as reason:
                self.reject(place, reason, row)
                continue
            shape = tuple(row)
            if shape not in shapes:
                shapes.add(shape)
                seen.update(row)
                for name in row.keys() - known:
                    if not name.startswith(_COME_AND_GO):
                        self.note(answer.locator, name, "added", f"a new field of the rows of a {kind} answer")
            yield place, row

    def reject(self, place: Place, reason: Rejected, row: Any) -> None:
        """Puts a row that could not be normalised aside, with the reason."""
        self._counts[place.answer].rejected += 1
        self._tables.append(
            "rejects",
            {
                "content_digest": place.answer.content_digest,
                "locator": place.answer.locator,
                "item": place.item,
                "reason": reason.reason,
                "detail": _cut(reason.detail),
                "raw": raw(row),
            },
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
        """Tells a surprise in form; see `Surprises.note`."""
        self.surprises.note(locator, field, kind, detail, each=each)

    def close(self, fetched_at: datetime, revision: str | None, parser: str) -> None:
        """Give each answer its row of `source_files`.

        Args:
            fetched_at: when they were fetched, of those that do not say so themselves.
            revision: upstream's revision, where it has one.
            parser: what read them.
        """
        self.surprises.fields = {kind: seen for kind, seen in self._fields.items() if seen}
        for answer, count in self._counts.items():
            self._tables.append(
                "source_files",
                {
                    "content_digest": answer.content_digest,
                    "locator": answer.locator,
                    "revision": revision,
                    "size_bytes": answer.size_bytes,
                    "fetched_at": answer.fetched_at or fetched_at,
                    "parser": parser,
                    "rows_read": count.read,
                    "rows_kept": count.read - count.duplicate - count.rejected,
                    "rows_duplicate": count.duplicate,
                    "rows_rejected": count.rejected,
                },
            )


def _cut(text: str) -> str:
    text = sound_text(text)
    return text if len(text) <= _LONGEST_DETAIL else text[:_LONGEST_DETAIL] + "…"
