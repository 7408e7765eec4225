"""Drafts of snapshots: every table written as Parquet and into one DuckDB file, with digests of all of it."""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse import attribution, croissant, datapackage, files, parquet, sorting
from warehouse.contracts import PARQUET_ONLY, SCHEMA_VERSION, TABLES
from warehouse.database import connect, memory_for, open_files, rows_of, with_enough_memory
from warehouse.digests import RowsDigest
from warehouse.home import Home
from warehouse.identity import canonical_json, digest, kebab
from warehouse.memory import give_back
from warehouse.snapshots import DATABASE, Snapshot, discard_draft, draft_folder, sound
from warehouse.statements import names, statement
from warehouse.texts import merged, write_texts
from warehouse.threads import ahead, in_threads

# Opened by every DuckDB from 1.0 on.
STORAGE_VERSION = "v1.0.0"
BATCH_ROWS = 4_096
# Problems of so many runs together are sorted at once; a larger one alone.
RUNS_AT_ONCE = sorting.ROWS_AT_ONCE
# Bytes without which DuckDB cannot write its file; a thread that sorts and writes takes about as many.
_LEAST_MEMORY = 144_000_000
_MOST_THREADS = 2
# Columns of runs that their figures are made of.
_MEASURED = (
    "source", "problem", "run_id", "primary_metric", "primary_statistic", "primary_value", "min_ns", "max_ns", "std_ns",
    "sample_count",
)  # fmt: skip
# Of what makes the files of runs out of parts: bump it when they change, or earlier files are taken again.
VERSION = "drafts/2"
# Say what a snapshot is or how it differs from another; no part of what it holds.
_OUTSIDE_CONTENT = ("snapshot", "movements")


def build(home: Home, parts: Mapping[str, Sequence[Path]], about: Mapping[str, Any]) -> Snapshot:
    """Build a draft of all tables.

    Args:
        home: the warehouse.
        parts: for each table, the Parquet files whose rows it has, each row once.
        about: `ranking_policy`, `facts_revision`, `code_version`, `inputs` (JSON) and `inputs_key`.
    """
    memory = max(_LEAST_MEMORY, memory_for(rows_of(parts.get("runs", ()))))
    return with_enough_memory(memory, partial(_build, home, parts, about))


def _build(
    home: Home, parts: Mapping[str, Sequence[Path]], about: Mapping[str, Any], memory: int, threads: int | None
) -> Snapshot:
    target = draft_folder(home)
    discard_draft(home)
    with (
        files.writing_folder(target) as folder,
        connect(temporary=home.temporary, memory=memory, threads=threads) as connection,
    ):
        previous = sound(home)
        writer = _Writer(folder, connection, about, previous, home.temporary)
        writers = max(1, min(memory // _LEAST_MEMORY, threads or _MOST_THREADS))
        writer.write_tables({name: [str(path) for path in paths] for name, paths in parts.items()}, writers)
        content_digest = writer.content_digest()
        now = datetime.now(UTC)
        snapshot_id = f"{now:%Y%m%dT%H%M%SZ}-{content_digest.removeprefix('sha256:')[:8]}"
        row = {
            "snapshot_id": snapshot_id,
            "created_at": now,
            "content_digest": content_digest,
            "schema_version": SCHEMA_VERSION,
            **{name: about[name] for name in ("ranking_policy", "facts_revision", "code_version")},
            "inputs": canonical_json(about["inputs"]),
        }
        writer.write_rows("snapshot", pa.Table.from_pylist([row], schema=TABLES["snapshot"].arrow_schema()))
        writer.write_database()
        written = _files(folder)
        sources = [source for path in writer.parquet("sources") for source in pq.read_table(path).to_pylist()]
        files.write_json(folder / datapackage.FILE, datapackage.datapackage(row, writer.resources, sources))
        files.write_json(folder / croissant.FILE, croissant.croissant(row, writer.resources, written, sources))
        files.write_bytes(folder / attribution.FILE, attribution.attribution(sources).encode())
        manifest = {
            **row,
            "created_at": now.isoformat(),
            "inputs": about["inputs"],
            "inputs_key": about["inputs_key"],
            "tables": writer.tables,
            "made_of": writer.made_of,
            "files": {**written, **_files(folder, without=written)},
        }
        files.write_json(folder / "manifest.json", manifest)
    return Snapshot(target)


# Source and problem.
_Place = tuple[str, str]


class _Runs(NamedTuple):
    """How many of a row group's rows are runs of a problem, and how many there are in `whole`."""

    place: _Place
    path: Path
    group: int
    rows: int
    whole: int


class _Written(NamedTuple):
    """A file of a table: its part's name, where it is in the draft, and how many rows of which digest it has."""

    table: str
    part: str
    place: str
    rows: int
    rows_digest: str


class _Writer:
    """Writes the tables of one draft and keeps account of them.

    Files that the snapshot before has too, byte for byte, are taken from there as hard links.
    """

    def __init__(
        self,
        folder: Path,
        connection: duckdb.DuckDBPyConnection,
        about: Mapping[str, Any],
        previous: Snapshot | None,
        temporary: Path,
    ) -> None:
        self._folder = folder
        self._temporary = temporary
        self._connection = connection
        self._previous = previous
        self._before = previous.manifest if previous else {"files": {}, "tables": {}}
        self._metadata = {
            "kernelmart.schema_version": SCHEMA_VERSION,
            "kernelmart.ranking_policy": about["ranking_policy"],
            "kernelmart.facts_revision": about["facts_revision"],
        }
        self.tables: dict[str, dict[str, Any]] = {name: {"rows": 0, "digests": {}} for name in (*TABLES, *PARQUET_ONLY)}
        self.resources: dict[str, list[str]] = {name: [] for name in (*TABLES, *PARQUET_ONLY)}
        # Of each part of the runs, a digest of what it was made of.
        self.made_of: dict[str, str] = {}

    def write_tables(self, parts: Mapping[str, list[str]], threads: int) -> None:
        """Write every table that comes from parts, and those that are made of them, by so many threads."""
        jobs = self._of_runs(parts.get("runs", []))
        for name in TABLES:
            if name == "run_lookup":
                with_digest = pc.field("run_digest").is_valid()
                jobs.append(partial(self._write, name, sorting.pieces_of(parts.get("runs", []), with_digest)))
            elif name not in ("runs", "measurements", "snapshot", "drift"):
                jobs.append(partial(self._write, name, sorting.pieces_of(parts.get(name, []))))
        for written in in_threads(_done, jobs, threads):
            self._account(written)
        self._write_drift(parts.get("drift", []))
        for name in PARQUET_ONLY:
            self._write_texts(name, parts.get(name, []))
        # In whatever order they were made or taken.
        for places in self.resources.values():
            places.sort()

    def write_rows(self, name: str, rows: pa.Table) -> None:
        """Write a small table, whose rows are in order."""
        self._account([self._write_rows(name, "all", rows.to_batches())])

    def parquet(self, name: str) -> list[str]:
        """Parquet files of a table that was written."""
        return [str(self._folder / path) for path in self.resources[name]]

    def content_digest(self) -> str:
        """Digest over the rows of all tables."""
        content = {name: table["digests"] for name, table in self.tables.items() if name not in _OUTSIDE_CONTENT}
        return digest(canonical_json(content))

    def write_database(self) -> None:
        """Put the Parquet files' rows into the DuckDB file, with comments, views and macros."""
        path = self._folder / DATABASE
        connection = self._connection
        connection.execute(f"attach {_quoted(str(path))} as published (storage_version {_quoted(STORAGE_VERSION)})")
        connection.execute("use published")
        for name, table in TABLES.items():
            connection.execute(table.ddl())
            if paths := self.parquet(name):
                text = f'insert into "{name}" select * from read_parquet($files, hive_partitioning = false)'
                connection.execute(text, {"files": paths})
        for text in ("macros", "snapshot/manifest", *names("views")):
            connection.execute(statement(text))
        connection.execute("use memory")
        connection.execute("checkpoint published")
        connection.execute("detach published")

    def _of_runs(self, paths: list[str]) -> list[Callable[[], list[_Written]]]:
        """What writes runs and their measurements, in parts by source and problem, the longest first; parts made of the
        same are taken again."""
        digests = dict(zip(paths, files.sha256_of_each([Path(path) for path in paths]), strict=True))
        places: dict[_Place, list[_Runs]] = {}
        for path in paths:
            for runs in _runs_of(Path(path)):
                places.setdefault(runs.place, []).append(runs)
        waiting: list[_Place] = []
        for place, found in sorted(places.items()):
            part = _part_of(*place)
            made_of = [digests[path] for path in {str(runs.path) for runs in found}]
            if not self._take(["runs", "measurements"], part, part, made_of):
                waiting.append(place)
        groups = [
            (group, _together([runs for place in group for runs in places[place]]))
            for group in _groups(waiting, {place: sum(runs.rows for runs in places[place]) for place in waiting})
        ]
        groups.sort(key=lambda found: -sum(piece.rows for piece in found[1]))
        return [partial(self._write_problems, *found) for found in groups]

    def _write_problems(self, group: list[_Place], pieces: Sequence[sorting.Piece]) -> list[_Written]:
        """Runs and measurements of some problems of one source."""
        ordered = self._in_order(pieces, TABLES["runs"].names, ("problem", *TABLES["runs"].sort[2:]))
        written = [*self._write_group("runs", group, ordered)]
        return [*written, *self._write_group("measurements", group, self._measured(pieces))]

    def _measured(self, pieces: Sequence[sorting.Piece]) -> Iterator[pa.Table]:
        """Every figure of some runs, in order of problems and runs."""
        with self._connection.cursor() as connection:
            for runs in self._in_order(pieces, _MEASURED, ("problem", "run_id")):
                connection.register("some_runs", runs)
                yield connection.sql(statement("snapshot/measurements")).to_arrow_table()

    def _in_order(
        self, pieces: Sequence[sorting.Piece], columns: Sequence[str], keys: Sequence[str]
    ) -> Iterator[pa.Table]:
        return sorting.in_order(pieces, columns, keys, self._temporary)

    def _write_group(self, name: str, group: list[_Place], tables: Iterable[pa.Table]) -> Iterator[_Written]:
        """Write a part of each problem of a group, also where it has no row, of rows in order of problems."""
        source, without = group[0][0], {problem for _, problem in group}
        pieces = itertools.groupby(_pieces(ahead(_batches(tables))), key=operator.itemgetter(0))
        for problem, of_problem in pieces:
            yield self._write_rows(name, _part_of(source, problem), (piece for _, piece in of_problem))
            without.remove(problem)
        for problem in sorted(without):
            yield self._write_rows(name, _part_of(source, problem), [])

    def _take(self, tables: Iterable[str], part: str, stated: str, digests: Iterable[str]) -> bool:
        """Take the files of a part from the snapshot before, if it has them made of the same; note what that is.

        Args:
            tables: which have the part.
            part: its name.
            stated: the name that it goes by in `made_of`.
            digests: of what it is made of.
        """
        made_of = "\n".join([VERSION, *self._metadata.values(), *sorted(digests)])
        self.made_of[stated] = hashlib.sha256(made_of.encode()).hexdigest()
        if self._previous is None or self._before.get("made_of", {}).get(stated) != self.made_of[stated]:
            return False
        for name in tables:
            place = next(path for path in self._before["files"] if path.startswith(f"parquet/{name}/{part}-"))
            files.link(self._previous.folder / place, self._folder / place)
            rows = pq.read_metadata(self._folder / place).num_rows
            self._account([_Written(name, part, place, rows, self._before["tables"][name]["digests"][part])])
        return True

    def _write_texts(self, name: str, paths: list[str]) -> None:
        """Merge the parts of a table of texts, a file for each of their pieces; those made of the same are taken."""
        pieces: dict[str, list[Path]] = {}
        for path in sorted(map(Path, paths)):
            pieces.setdefault(path.stem.partition("-")[2] or "all", []).append(path)
        for piece, found in sorted(pieces.items()):
            if not self._take([name], piece, f"{name}/{piece}", map(files.sha256, found)):
                schema = PARQUET_ONLY[name].arrow_schema()
                account = RowsDigest(schema)
                path = self._folder / "parquet" / name / "part"
                counted = _counted(merged(found), schema, account)
                write_texts(path, counted, schema, {**self._metadata, "kernelmart.table": name})
                self._account([self._finish(name, piece, path, account)])

    def _write(self, name: str, pieces: Sequence[sorting.Piece]) -> list[_Written]:
        """Write a table of rows in any order."""
        table = TABLES[name]
        return [self._write_rows(name, "all", ahead(_batches(self._in_order(pieces, table.names, table.sort))))]

    def _write_drift(self, paths: Sequence[str]) -> None:
        """Write what surprised, each with the time that the snapshot before says it was first seen."""
        before = [str(path) for path in self._previous.parquet("drift")] if self._previous else []
        for relation, files_of in (("part_rows", paths), ("previous_drift", before)):
            if files_of:
                open_files(self._connection, relation, files_of)
            else:
                self._connection.register(relation, TABLES["drift"].empty())
        rows = self._connection.sql(statement("snapshot/drift")).to_arrow_reader(BATCH_ROWS)
        self._account([self._write_rows("drift", "all", rows)])

    def _write_rows(self, name: str, part: str, batches: Iterable[pa.RecordBatch]) -> _Written:
        table = TABLES[name]
        schema = table.arrow_schema()
        account = RowsDigest(schema, table.volatile)
        path = self._folder / "parquet" / name / part
        parquet.write_parquet(
            path,
            _counted(batches, schema, account),
            schema,
            sort=table.sort,
            metadata={**self._metadata, "kernelmart.table": name},
            bloom_filters=table.looked_up,
        )
        return self._finish(name, part, path, account)

    def _finish(self, name: str, part: str, path: Path, account: RowsDigest) -> _Written:
        """Give a file that is written its name, and take the one of the snapshot before if that is the same."""
        sha256 = files.sha256(path)
        final = path.with_name(f"{part}-{sha256[:8]}.parquet")
        path.rename(final)
        place = final.relative_to(self._folder).as_posix()
        if self._previous and self._before["files"].get(place, {}).get("sha256") == sha256:
            files.link(self._previous.folder / place, final)
        return _Written(name, part, place, account.rows, account.digest())

    def _account(self, written: Iterable[_Written]) -> None:
        for one in written:
            self.tables[one.table]["rows"] += one.rows
            self.tables[one.table]["digests"][one.part] = one.rows_digest
            self.resources[one.table].append(one.place)


def _done(job: Callable[[], list[_Written]]) -> list[_Written]:
    """What a job wrote. Its memory goes back at its end: after each step that would take a third of the time."""
    try:
        return job()
    finally:
        give_back()


def _counted(batches: Iterable[pa.RecordBatch], schema: pa.Schema, account: RowsDigest) -> Iterator[pa.RecordBatch]:
    """The same rows as a schema has them, taken into account as they pass."""
    for batch in batches:
        columns = [batch.column(field.name).cast(field.type) for field in schema]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        account.update(rows)
        yield rows


def _part_of(source: str, problem: str) -> str:
    """Name of the part with a problem's runs."""
    return f"{kebab(source)}-{hashlib.sha256(f'{source}/{problem}'.encode()).hexdigest()[:12]}"


def _groups(places: Iterable[_Place], rows: Mapping[_Place, int]) -> Iterator[list[_Place]]:
    """Problems of one source in groups of at most `RUNS_AT_ONCE` rows, in order; a larger one is a group of its own."""
    group: list[_Place] = []
    count = 0
    for place in places:
        if group and (place[0] != group[0][0] or count + rows[place] > RUNS_AT_ONCE):
            yield group
            group, count = [], 0
        group.append(place)
        count += rows[place]
    if group:
        yield group


def _runs_of(path: Path) -> Iterator[_Runs]:
    """Where in a part which problem's runs are."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        found = file.read_row_group(group, columns=["source", "problem"]).group_by(["source", "problem"])
        for row in found.aggregate([([], "count_all")]).to_pylist():
            whole = file.metadata.row_group(group).num_rows
            yield _Runs((row["source"], row["problem"]), path, group, row["count_all"], whole)


def _together(found: Sequence[_Runs]) -> list[sorting.Piece]:
    """The pieces with the runs of some problems of one source: each row group once, and nothing else that is in it."""
    pieces = []
    for (path, group), of_group in itertools.groupby(sorted(found, key=_row_group), key=_row_group):
        several = list(of_group)
        rows, where = sum(runs.rows for runs in several), None
        if rows < several[0].whole:
            problems = [runs.place[1] for runs in several]
            where = (pc.field("source") == several[0].place[0]) & pc.field("problem").isin(problems)
        pieces.append(sorting.Piece(path, group, rows, where))
    return pieces


def _row_group(runs: _Runs) -> tuple[Path, int]:
    return runs.path, runs.group


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows in order of their problems, in pieces of one problem each, after its name."""
    for batch in batches:
        if not batch.num_rows:
            continue
        problem = batch.column("problem")
        changes = pc.indices_nonzero(pc.not_equal(problem.slice(1), problem.slice(0, len(problem) - 1))).to_pylist()
        for first, last in itertools.pairwise([0, *(change + 1 for change in changes), len(problem)]):
            yield problem[first].as_py(), batch.slice(first, last - first)


def _files(folder: Path, without: Container[str] = ()) -> dict[str, dict[str, Any]]:
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    named = {name: path for path in found if (name := path.relative_to(folder).as_posix()) not in without}
    digests = files.sha256_of_each([*named.values()])
    return {
        name: {"sha256": sha256, "size_bytes": path.stat().st_size}
        for (name, path), sha256 in zip(named.items(), digests, strict=True)
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def inputs_key(inputs: Any) -> str:
    """Digest of all that a snapshot is made from; equal keys give equal snapshots."""
    return digest(json.dumps(inputs, sort_keys=True))
