"""KernelBot's typed rows made into the tables of the contract.

What all files share (which copy of a run is kept, what a board, a case and a label stand for) is worked out once over
narrow columns; each file, or several small ones together, is then a few statements over its own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from assets.expressions import ExpressionError
from assets.kernelbot import documents
from assets.kernelbot.facts import CORRECTNESS, UNLISTED_BOARDS, Board
from assets.kernelbot.read import ROWS
from assets.kernelbot.terms import SOURCE
from warehouse.contracts import SCORES, TABLES
from warehouse.database import open_files
from warehouse.identity import canonical_json, correctness_key, document, kebab
from warehouse.statements import statement

# Bump when the tables that a file gives change: parts made by an earlier version are then made anew.
VERSION = "kernelbot-tables/1"
BATCH_ROWS = 4_096
# Files of so few rows together are normalised together: a statement's planning takes longer than they do.
GROUP_ROWS = 16_384

KNOWN_MODES = frozenset({"test", "benchmark", "leaderboard", "profile"})
KNOWN_STATUSES = frozenset(
    {"succeeded", "failed", "hacked", "active", "timeout", "timed_out", "compile_error", "runtime_error", "incorrect"}
)
_PRECEDENCE = [
    "submissions",
    "successful_submissions",
    "deduplicated_submissions",
    "deduplicated_successful_submissions",
]
_PER_CASE = "per case"


@dataclass(frozen=True)
class FileRows:
    """The typed rows of one submissions file, kept as Parquet at `path`."""

    locator: str
    content_digest: str
    family: str
    path: Path

    @property
    def precedence(self) -> tuple[int, str]:
        """Order in which files may keep a run that several have."""
        name = self.locator.rsplit("/", 1)[-1].removesuffix(".parquet")
        return (_PRECEDENCE.index(name) if name in _PRECEDENCE else len(_PRECEDENCE), self.locator)


@dataclass(frozen=True)
class BoardListing:
    """A board as the export's own list has it."""

    upstream_id: str
    name: str
    deadline_at: datetime | None


class Normaliser:
    """What the files share, worked out on creation; then each file's tables.

    Args:
        connection: a DuckDB connection with the macros; temporary relations are made in it.
        files: the submissions files, in any order.
        listings: the boards of `leaderboards.parquet`.
        facts: boards with facts, by name.
        known_sources: `submission_id`, `source_digest`, `source_bytes`, each submission once.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Iterable[FileRows],
        listings: Sequence[BoardListing],
        facts: Mapping[str, Board],
        known_sources: pa.Table,
    ) -> None:
        self._connection = connection
        self._facts = facts
        self._listings = {listing.name: listing for listing in reversed(listings)}
        self.files = sorted(files, key=lambda file: file.precedence)
        self._describe_files()
        self._open(self.files)
        self._name_boards(listings)
        self._make("candidates")
        self._describe_hardware()
        for relation in ("copies", "kept", "speakers", "implementers"):
            self._make(relation)
        self._describe_boards()
        connection.register("known_sources", known_sources)
        for relation in ("representatives", "marked", "decided"):
            self._make(relation)
        self._describe_protocols()
        self._fingerprints = dict(self._rows("kernelbot/fingerprint"))

    def groups(self) -> list[tuple[FileRows, ...]]:
        """The files in the groups that they are normalised in: a large one alone, small ones together."""
        groups: list[list[FileRows]] = []
        room = 0
        for file in self.files:
            rows = pq.read_metadata(file.path).num_rows
            if not groups or rows > room:
                groups.append([])
                room = GROUP_ROWS
            groups[-1].append(file)
            room -= rows
        return [tuple(group) for group in groups]

    def fingerprint(self, files: Sequence[FileRows]) -> list[str | None]:
        """All that the tables of some files depend on besides their own rows, as a number each."""
        return [self._fingerprints.get(self.files.index(file)) for file in files]

    def tables(self, files: Sequence[FileRows]) -> Iterator[tuple[str, pa.Schema, pa.RecordBatchReader]]:
        """The tables of some files' rows: name, schema and rows. Rows are streamed: take each to its end."""
        self._open(files)
        self._connection.execute(f"create or replace temp view kept_rows as {statement('kernelbot/kept_rows')}")
        self._connection.execute(f"create or replace temp view results as {statement('kernelbot/results')}")
        for name, part in (
            ("runs", "runs"),
            ("scores", "kernelbot/scores"),
            ("submissions", "kernelbot/submissions"),
            ("implementations", "kernelbot/implementations"),
            ("rejects", "kernelbot/case_rejects"),
        ):
            schema = (SCORES if name == "scores" else TABLES[name]).arrow_schema()
            yield name, schema, self._connection.sql(statement(part)).to_arrow_reader(BATCH_ROWS)

    def shared_tables(self) -> dict[str, pa.Table]:
        """Problems, cases, authors, protocols and environments of all files together."""
        self._open(self.files)
        self._make("people")
        authors = self._connection.sql(statement("kernelbot/authors")).to_arrow_table()
        return {
            "problems": self._problems(),
            "cases": self._cases(),
            "authors": authors.cast(TABLES["authors"].arrow_schema()),
            "protocols": self._protocol_rows(),
            "environments": self._environment_rows(),
        }

    def counts(self) -> dict[str, tuple[int, int]]:
        """Kept and duplicate rows of each file."""
        counts = self._rows("kernelbot/counts")
        return {self.files[position].locator: (kept, duplicate) for position, kept, duplicate in counts}

    def boardless(self) -> list[dict[str, Any]]:
        """Rows that name no board: `locator` of their file, and their typed columns."""
        self._open(self.files)
        rows: list[dict[str, Any]] = self._connection.sql(statement("kernelbot/boardless")).to_arrow_table().to_pylist()
        return rows

    def drift(self) -> list[dict[str, str]]:
        """Values and copies that surprise: `locator`, `field`, `kind`, `detail`."""
        known = {
            "runner": lambda value: documents.hardware(value).known,
            "run_system_info.gpu": lambda value: documents.hardware(value).known,
            "mode": KNOWN_MODES.__contains__,
            "status": KNOWN_STATUSES.__contains__,
        }
        found = [
            {
                "locator": self.files[position].locator,
                "field": field,
                "kind": "unknown_value",
                "detail": value[:200],
            }
            for field, value, position in self._rows("kernelbot/seen")
            if not known[field](value)
        ]
        found += [
            {"locator": self.files[position].locator, "field": "run", "kind": "conflict", "detail": detail}
            for position, detail in self._rows("kernelbot/conflicts")
        ]
        return found

    # What the files share.

    def _describe_files(self) -> None:
        self._register(
            "file",
            precedence=pa.array(range(len(self.files)), pa.int64()),
            path=_texts(str(file.path) for file in self.files),
            locator=_texts(file.locator for file in self.files),
            content_digest=_texts(file.content_digest for file in self.files),
            family=_texts(file.family for file in self.files),
        )

    def _open(self, files: Sequence[FileRows]) -> None:
        """Make `file_rows` those of some files."""
        if files:
            open_files(self._connection, "all_rows", [file.path for file in files], named=True)
        else:
            nothing = ROWS.append(pa.field("filename", pa.string())).empty_table()
            self._connection.from_arrow(nothing).create_view("all_rows", replace=True)
        self._connection.execute(f"create or replace temp view file_rows as {statement('kernelbot/file_rows')}")

    def _make(self, relation: str) -> None:
        """Make a relation of what its statement says."""
        self._connection.execute(f"create or replace temp table {relation} as {statement(f'kernelbot/{relation}')}")

    def _name_boards(self, listings: Sequence[BoardListing]) -> None:
        names = {str(number): name for number, name in UNLISTED_BOARDS.items()}
        names |= {str(board.upstream_id): board.name for board in self._facts.values() if board.upstream_id is not None}
        names |= {listing.upstream_id: listing.name for listing in reversed(listings)}
        self._register("board_names", leaderboard_id=_texts(names), name=_texts(names.values()))

    def _describe_hardware(self) -> None:
        rows = self._connection.execute("select distinct label from candidates where label is not null").fetchall()
        labels = sorted(label for (label,) in rows)
        machines = [documents.hardware(label) for label in labels]
        self._register(
            "hardware",
            label=_texts(labels),
            product=_texts(machine.product for machine in machines),
            architecture=_texts(machine.architecture for machine in machines),
            fleet_digest=_texts(_environment(label, True)[1] for label in labels),
            product_digest=_texts(_environment(label, False)[1] for label in labels),
        )

    def _describe_boards(self) -> None:
        # A board is one that rows which count are of, or one of the export's own list.
        rows = self._connection.execute("select distinct board from kept").fetchall()
        self._boards = {name: self._facts.get(name) for name in sorted({*(name for (name,) in rows), *self._listings})}
        refused = self._describe_cases()
        facts = self._boards.items()
        self._register(
            "boards",
            board=_texts(self._boards),
            problem_digest=_texts(documents.problem_document(name, board)[1] for name, board in facts),
            suite_digest=_texts(documents.suite_document(name, board)[1] for name, board in facts),
            statistic=_texts(board.statistic if board else "unspecified" for _, board in facts),
            ranking_by=_texts(board.ranking_by if board else None for _, board in facts),
            correctness_key=_texts(correctness_key(CORRECTNESS) for _ in facts),
            dtypes=pa.array([board.dtypes if board else None for _, board in facts], pa.list_(pa.string())),
            refused_specs=pa.array([refused.get(name, []) for name, _ in facts], pa.list_(pa.string())),
        )

    def _describe_cases(self) -> dict[str, list[str]]:
        """Make `workloads` of all cases; the specs of each board that no case can be made of."""
        specs = self._rows("kernelbot/specs")
        self._workloads: dict[tuple[str, str], documents.Workload] = {}
        refused: dict[tuple[str, str], ExpressionError] = {}
        for board, spec in specs:
            try:
                self._workloads[board, spec] = documents.workload_case(board, self._boards[board], spec)
            except ExpressionError as error:
                refused[board, spec] = error
        self._register(
            "workloads",
            board=_texts(board for board, _ in specs),
            spec=_texts(spec for _, spec in specs),
            workload_digest=_texts(self._workloads[key].digest if key in self._workloads else None for key in specs),
            reason=_texts(refused[key].code if key in refused else None for key in specs),
            detail=_texts(refused[key].detail if key in refused else None for key in specs),
        )
        of_boards: dict[str, list[str]] = {}
        for board, spec in refused:
            of_boards.setdefault(board, []).append(spec)
        return of_boards

    def _describe_protocols(self) -> None:
        statistics = {board.statistic if board else "unspecified" for board in self._boards.values()}
        self._register(
            "protocols",
            statistic=_texts([_PER_CASE, *sorted(statistics)]),
            protocol_digest=_texts(_protocol(statistic)[1] for statistic in (None, *sorted(statistics))),
        )

    # Small tables, a row a document.

    def _problems(self) -> pa.Table:
        per_case = self._boards_of("per_case")
        ids = dict(
            self._connection.execute(
                "select board, min(leaderboard_id) from candidates where board is not null group by board"
            ).fetchall()
        )
        rows = []
        for name, board in self._boards.items():
            listing = self._listings.get(name)
            text, problem_digest = documents.problem_document(name, board)
            scoring = board.scoring if board else "per_case" if name in per_case else "aggregate"
            upstream_id = listing.upstream_id if listing else ids.get(name)
            rows.append(
                {
                    "source": SOURCE,
                    "problem": name,
                    "problem_digest": problem_digest,
                    "slug": board.slug if board else f"kernelmart-{kebab(name)}",
                    "family": board.family if board else "uncategorized",
                    "title": board.title if board else name,
                    "scoring": scoring,
                    "ranking_by": board.ranking_by if board else None,
                    "axes": canonical_json(board.axes if board else {}),
                    "inputs": canonical_json(list(board.inputs) if board else []),
                    "outputs": canonical_json(list(board.outputs) if board else []),
                    "tags": list(board.tags) if board else [],
                    "curated": board is not None,
                    "upstream_id": upstream_id or (str(board.upstream_id) if board and board.upstream_id else None),
                    "deadline_at": listing.deadline_at if listing else None,
                    "document": text,
                }
            )
        return _table("problems", rows)

    def _cases(self) -> pa.Table:
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for (name, _), workload in self._workloads.items():
            rows.setdefault(
                (name, workload.digest),
                {
                    **self._case_row(name, "case", workload.digest, workload.document),
                    "axes": workload.axes,
                    "tensors": workload.tensors,
                },
            )
        aggregate = self._boards_of("aggregate")
        for name, board in self._boards.items():
            if name in aggregate or (board and board.suite):
                text, digest = documents.suite_document(name, board)
                rows[name, digest] = {
                    **self._case_row(name, "suite", digest, text),
                    "suite_cases": canonical_json(list(board.suite.cases)) if board and board.suite else None,
                    "statistic": board.statistic if board else "unspecified",
                }
        return _table("cases", rows.values())

    def _case_row(self, name: str, kind: str, digest: str, text: str) -> dict[str, Any]:
        board = self._boards[name]
        return {
            "source": SOURCE,
            "problem": name,
            "workload_digest": digest,
            "occurrence": 0,
            "kind": kind,
            "problem_digest": documents.problem_document(name, board)[1],
            "dtypes": board.dtypes if board else [],
            "correctness": canonical_json(CORRECTNESS),
            "correctness_key": correctness_key(CORRECTNESS),
            "document": text,
        }

    def _protocol_rows(self) -> pa.Table:
        families = {
            family for (family,) in self._connection.execute("select distinct family from candidates").fetchall()
        }
        statistics: list[str | None] = [None] if "per_case" in families else []
        if "aggregate" in families:
            statistics += sorted({board.statistic if board else "unspecified" for board in self._boards.values()})
        rows = []
        for statistic in statistics:
            spec = documents.protocol(statistic)
            text, digest = _protocol(statistic)
            rows.append(
                {
                    "protocol_digest": digest,
                    "harness": spec["harness"]["name"],
                    "repository": spec["harness"]["repository"],
                    "timer": spec["measurement"]["timer"],
                    "primary_statistic": spec["measurement"]["primaryStatistic"],
                    "correctness_reference": spec["correctness"]["reference"],
                    "comparator": spec["correctness"]["comparator"],
                    "family": spec["comparability"]["family"],
                    "notes": spec["comparability"]["notes"],
                    "document": text,
                }
            )
        return _table("protocols", rows)

    def _environment_rows(self) -> pa.Table:
        pairs = self._connection.execute(
            "select distinct label, family = 'aggregate' from candidates where label is not null order by all"
        ).fetchall()
        rows: dict[str, dict[str, Any]] = {}
        for label, aggregate in pairs:
            machine = documents.hardware(label)
            text, digest = _environment(label, aggregate)
            rows[digest] = {
                "environment_digest": digest,
                "vendor": machine.vendor,
                "product": machine.product,
                "architecture": machine.architecture,
                "runner": label if aggregate else None,
                "software": "{}",
                "document": text,
            }
        return _table("environments", rows.values())

    def _boards_of(self, family: str) -> set[str]:
        rows = self._connection.execute("select distinct board from candidates where family = ?", [family]).fetchall()
        return {name for (name,) in rows if name is not None}

    def _register(self, relation: str, **columns: pa.Array) -> None:
        self._connection.register(relation, pa.table(columns))

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement(name)).fetchall()


def _environment(label: str, aggregate: bool) -> tuple[str, str]:
    return document("ExecutionEnvironment", documents.environment(label, aggregate=aggregate))


def _protocol(statistic: str | None) -> tuple[str, str]:
    return document("BenchmarkProtocol", documents.protocol(statistic))


def _texts(values: Iterable[str | None]) -> pa.Array:
    return pa.array(list(values), pa.string())


def _table(name: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=TABLES[name].arrow_schema())
