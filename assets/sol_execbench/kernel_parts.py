"""Parts of what groups of kernels make: many groups lie in one part, and each is made once and then only read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assets.sol_execbench.groups import Group
from assets.sol_execbench.kernels import Mentions
from assets.sol_execbench.ledger import Surprises
from assets.sol_execbench.normalise import VERSION, Batch, Reading
from assets.sol_execbench.terms import SOURCE
from warehouse.contracts import SCORES, TABLES
from warehouse.database import connect
from warehouse.parts import Part, PartStore, PartWriter, part_key
from warehouse.statements import statement

STAGE = f"{SOURCE}/kernels"
# The published tables that groups make on their own; `results` is made into the last two.
TABLE_NAMES = (
    "problems", "cases", "submissions", "implementations", "source_files", "rejects", "runs", "scores",
)  # fmt: skip
# Results that one part may have: it is made in memory.
_MOST_RESULTS = 25_000
# Parts that a merge reads at most, and how many of the largest stay when there are more.
_MOST_PARTS, _LARGEST_PARTS = 16, 8
_NAMED = "named_submissions"
_NAMED_SCHEMA = pa.schema([("submission_id", pa.int64())])


@dataclass(frozen=True)
class Made:
    """A group that was made: the part that it is in, and what is recorded of it there."""

    part: Part
    record: Mapping[str, Any]

    @property
    def surprises(self) -> Surprises:
        """What is odd in its answers."""
        return Surprises.from_record(self.record["surprises"])

    def rows(self, table: str) -> tuple[int, int]:
        """Its first row in a table of the part, and the one after its last."""
        first, last = self.record["rows"]["results" if table in ("runs", "scores") else table]
        return first, last


class KernelParts:
    """The groups of a source, made or found.

    Args:
        store: where parts are kept.
        fetched_at: when answers were fetched, of those that do not say so themselves.
        revision: upstream's revision, where it has one.
    """

    def __init__(self, store: PartStore, fetched_at: datetime, revision: str | None) -> None:
        self._store = store
        self._fetched_at = fetched_at
        self._revision = revision
        self._made: dict[str, Made] = {}

    def make(self, groups: Iterable[Group]) -> dict[Group, Made]:
        """The groups, each of them read only where it was not before.

        Raises:
            UnreadableAnswer: where an answer has no rows that one could read.
        """
        keys = {group: group.key(VERSION, self._revision) for group in groups}
        self._find(set(keys.values()))
        missing = [group for group, key in keys.items() if key not in self._made]
        while missing:
            missing = self._make(missing, keys)
        return {group: self._made[key] for group, key in keys.items()}

    def mentions(self, made: Mapping[Group, Made]) -> dict[Group, Mentions]:
        """What the answers of groups name."""
        named: dict[Part, list[int]] = {
            part: part.read(_NAMED)["submission_id"].to_pylist() for part in {one.part for one in made.values()}
        }
        found = {}
        for group, one in made.items():
            first, last = one.rows(_NAMED)
            record = one.record["mentions"]
            submissions = set(named[one.part][first:last])
            found[group] = Mentions(set(record["kernels"]), set(record["names"]), submissions)
        return found

    def rows_of(self, table: str, made: Iterable[Made]) -> Iterator[pa.RecordBatch]:
        """The rows that groups have in a table."""
        by_part: dict[Part, list[tuple[int, int]]] = defaultdict(list)
        for one in made:
            by_part[one.part].append(one.rows(table))
        for part, ranges in by_part.items():
            rows = part.read(table)
            for first, last in _joined(ranges):
                yield from rows.slice(first, last - first).to_batches()

    def _find(self, wanted: set[str]) -> None:
        """Find the groups that are in some part already."""
        wanted = wanted - self._made.keys()
        found: list[tuple[Part, dict[str, Any]]] = []
        folder = self._store.root / STAGE
        for name in sorted(path.name for path in folder.iterdir()) if folder.is_dir() else ():
            records = Part(folder / name).facts.get("groups", {})
            if wanted & records.keys() and (part := self._store.find(STAGE, name)):
                found.append((part, {key: record for key, record in records.items() if key in wanted}))
        if len(found) > _MOST_PARTS:
            # Each changed night adds a part: those with few groups in use are made anew, as one.
            found.sort(key=lambda entry: len(entry[1]), reverse=True)
            del found[_LARGEST_PARTS:]
        for part, records in found:
            self._made |= {key: Made(part, record) for key, record in records.items()}

    def _make(self, groups: list[Group], keys: Mapping[Group, str]) -> list[Group]:
        """Make a part of some of the groups; those that are left."""
        batch = Batch(self._fetched_at, self._revision)
        records: dict[str, Any] = {}
        named: list[int] = []
        left = list(groups)
        while left and batch.tables.counts()["results"] < _MOST_RESULTS:
            group = left.pop(0)
            reading = batch.read(group)
            first = len(named)
            named += sorted(reading.mentions.submissions)
            records[keys[group]] = _record(reading, (first, len(named)))
        name = part_key(sorted(records))
        with self._store.making(STAGE, name, {"groups": records}) as writer:
            writer.write(_NAMED, pa.table([pa.array(named, pa.int64())], schema=_NAMED_SCHEMA), _NAMED_SCHEMA)
            _write(writer, batch.tables.tables())
        part = Part(self._store.root / STAGE / name)
        self._made |= {key: Made(part, record) for key, record in records.items()}
        return left


def _record(reading: Reading, named: tuple[int, int]) -> dict[str, Any]:
    mentions = {"kernels": sorted(reading.mentions.kernels), "names": sorted(reading.mentions.names)}
    return {
        "rows": {**reading.rows, _NAMED: named},
        "surprises": reading.surprises.as_record(),
        "mentions": mentions,
    }


def _write(writer: PartWriter, tables: dict[str, pa.Table]) -> None:
    results = tables.pop("results")
    for name, table in tables.items():
        writer.write(name, table, TABLES[name].arrow_schema())
    with connect() as connection:
        # Where a group's rows are must be the same in what is made of its results.
        connection.execute("set preserve_insertion_order = true")
        connection.register("results", results)
        for name, contract in (("runs", TABLES["runs"]), ("scores", SCORES)):
            rows: pa.Table = connection.sql(statement(name)).to_arrow_table()
            writer.write(name, rows, contract.arrow_schema())


def columns_of(part: Part, table: str, *names: str) -> list[pa.ChunkedArray]:
    """Some columns of a table of a part."""
    return list(pq.read_table(part.path(table), columns=list(names), partitioning=None).select(list(names)).columns)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, those that meet as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        elif last > first:
            joined.append((first, last))
    return joined
