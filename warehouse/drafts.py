"""Drafts of snapshots: every table written as Parquet and into one DuckDB file, with digests of all of it."""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse import attribution, croissant, datapackage, files, parquet
from warehouse.contracts import PARQUET_ONLY, SCHEMA_VERSION, TABLES, Table
from warehouse.database import connect, open_files
from warehouse.digests import RowsDigest
from warehouse.home import Home
from warehouse.identity import canonical_json, digest, kebab
from warehouse.snapshots import DATABASE, Snapshot, discard_draft, draft_folder, sound
from warehouse.statements import names, statement
from warehouse.texts import merged, write_texts

# Opened by every DuckDB from 1.0 on.
STORAGE_VERSION = "v1.0.0"
BATCH_ROWS = 8_192
# Problems of so many runs together are sorted at once; a larger one alone.
RUNS_AT_ONCE = 131_072
# Of what makes the files of runs out of parts: bump it when they change, or earlier files are taken again.
VERSION = "drafts/2"
# Say what a snapshot is or how it differs from another; no part of what it holds.
_OUTSIDE_CONTENT = ("snapshot", "movements")


def build(home: Home, parts: Mapping[str, Iterable[Path]], about: Mapping[str, Any]) -> Snapshot:
    """Build a draft of all tables.

    Args:
        home: the warehouse.
        parts: for each table, the Parquet files whose rows it has, each row once.
        about: `ranking_policy`, `facts_revision`, `code_version`, `inputs` (JSON) and `inputs_key`.
    """
    target = draft_folder(home)
    discard_draft(home)
    with files.writing_folder(target) as folder, connect(temporary=home.temporary) as connection:
        previous = sound(home)
        writer = _Writer(folder, connection, about, previous)
        _previous_drift(connection, previous)
        writer.write_tables({name: [str(path) for path in paths] for name, paths in parts.items()})
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
    ) -> None:
        self._folder = folder
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

    def write_tables(self, parts: Mapping[str, list[str]]) -> None:
        """Write every table that comes from parts, and those that are made of them."""
        self._write_runs(parts.get("runs", []))
        for name in TABLES:
            if name in ("runs", "measurements", "snapshot"):
                continue
            self._rows_of(parts.get("runs" if name == "run_lookup" else name, []), TABLES[name])
            text = (
                statement(f"snapshot/{name}") if name in ("run_lookup", "drift") else _sorted("part_rows", TABLES[name])
            )
            self._write(name, "all", text)
        for name in PARQUET_ONLY:
            self._write_texts(name, parts.get(name, []))
        # In whatever order they were made or taken.
        for places in self.resources.values():
            places.sort()

    def write_rows(self, name: str, rows: pa.Table) -> None:
        """Write a small table."""
        self._connection.from_arrow(rows).create_view("part_rows", replace=True)
        self._write(name, "all", _sorted("part_rows", TABLES[name]))

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

    def _write_runs(self, paths: list[str]) -> None:
        """Runs and their measurements, in parts by source and problem; those made of the same parts are taken again."""
        digests = {path: files.sha256(Path(path)) for path in paths}
        problems: dict[tuple[str, str], tuple[int, list[str]]] = {}
        for path in paths:
            open_files(self._connection, "part_rows", [path])
            text = "select source, problem, count(*) from part_rows group by source, problem"
            for source, problem, rows in self._connection.execute(text).fetchall():
                count, found = problems.setdefault((source, problem), (0, []))
                problems[source, problem] = (count + rows, [*found, path])
        waiting: list[tuple[str, str]] = []
        for place in sorted(problems):
            part = _part_of(*place)
            if not self._take(["runs", "measurements"], part, part, [digests[path] for path in problems[place][1]]):
                waiting.append(place)
        counts = {place: rows for place, (rows, _) in problems.items()}
        for group in _groups(waiting, counts):
            found = sorted({path for place in group for path in problems[place][1]})
            open_files(self._connection, "all_runs", found)
            with _sorting(self._connection, sum(counts[place] for place in group)):
                self._write_group("runs", group)
            self._write_group("measurements", group)

    def _write_group(self, name: str, group: list[tuple[str, str]]) -> None:
        """Write a part of each problem of a group, also where it has no row."""
        source, problems = group[0][0], [problem for _, problem in group]
        limits = {"source": source, "first": problems[0], "last": problems[-1], "problems": problems}
        rows = self._connection.sql(statement(f"snapshot/{name}"), params=limits).to_arrow_reader(BATCH_ROWS)
        pieces = itertools.groupby(_pieces(parquet.ahead(rows)), key=operator.itemgetter(0))
        without = set(problems)
        for problem, of_problem in pieces:
            self._write_rows(name, _part_of(source, problem), (piece for _, piece in of_problem))
            without.remove(problem)
        for problem in without:
            self._write_rows(name, _part_of(source, problem), [])

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
            self._account(name, part, place, rows, self._before["tables"][name]["digests"][part])
        return True

    def _rows_of(self, paths: list[str], table: Table) -> None:
        """Make `part_rows` the rows of some files."""
        if paths:
            open_files(self._connection, "part_rows", paths)
        else:
            source = TABLES["runs"] if table.name == "run_lookup" else table
            self._connection.from_arrow(source.empty()).create_view("part_rows", replace=True)

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
                self._finish(name, piece, path, account)

    def _write(self, name: str, part: str, text: str) -> None:
        rows = self._connection.sql(text).to_arrow_reader(BATCH_ROWS)
        self._write_rows(name, part, parquet.ahead(rows))

    def _write_rows(self, name: str, part: str, batches: Iterable[pa.RecordBatch]) -> None:
        table = TABLES[name]
        schema = table.arrow_schema()
        account = RowsDigest(schema, table.volatile)
        path = self._folder / "parquet" / name / "part"
        parquet.write_parquet(
            path,
            _counted(batches, schema, account),
            schema,
            sort=table.sort,
            metadata={**self._metadata, "kernelmart.table": name},
            bloom_filters=table.looked_up,
        )
        self._finish(name, part, path, account)

    def _finish(self, name: str, part: str, path: Path, account: RowsDigest) -> None:
        """Give a file that is written its name, and take the one of the snapshot before if that is the same."""
        sha256 = files.sha256(path)
        final = path.with_name(f"{part}-{sha256[:8]}.parquet")
        path.rename(final)
        place = final.relative_to(self._folder).as_posix()
        if self._previous and self._before["files"].get(place, {}).get("sha256") == sha256:
            files.link(self._previous.folder / place, final)
        self._account(name, part, place, account.rows, account.digest())

    def _account(self, name: str, part: str, place: str, rows: int, rows_digest: str) -> None:
        self.tables[name]["rows"] += rows
        self.tables[name]["digests"][part] = rows_digest
        self.resources[name].append(place)


@contextmanager
def _sorting(connection: duckdb.DuckDBPyConnection, rows: int) -> Iterator[None]:
    """Sort whole runs. So many that they must spill are left to one thread: each takes memory of its own to merge."""
    (threads,) = connection.execute("select current_setting('threads')").fetchall()[0]
    connection.execute(f"set threads = {1 if rows > RUNS_AT_ONCE else threads}")
    yield
    connection.execute(f"set threads = {threads}")


def _counted(batches: Iterable[pa.RecordBatch], schema: pa.Schema, account: RowsDigest) -> Iterator[pa.RecordBatch]:
    """The same rows as a schema has them, taken into account as they pass."""
    for batch in batches:
        columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        account.update(rows)
        yield rows


def _part_of(source: str, problem: str) -> str:
    """Name of the part with a problem's runs."""
    return f"{kebab(source)}-{hashlib.sha256(f'{source}/{problem}'.encode()).hexdigest()[:12]}"


def _groups(places: Iterable[tuple[str, str]], rows: Mapping[tuple[str, str], int]) -> Iterator[list[tuple[str, str]]]:
    """Problems of one source in groups of at most `RUNS_AT_ONCE` rows, in order; a larger one is a group of its own."""
    group: list[tuple[str, str]] = []
    count = 0
    for place in places:
        if group and (place[0] != group[0][0] or count + rows[place] > RUNS_AT_ONCE):
            yield group
            group, count = [], 0
        group.append(place)
        count += rows[place]
    if group:
        yield group


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows whose first column says their part, in pieces of one part each, with that and without the column."""
    for batch in batches:
        if not batch.num_rows:
            continue
        part = batch.column(0)
        changes = pc.indices_nonzero(pc.not_equal(part.slice(1), part.slice(0, len(part) - 1))).to_pylist()
        rows = batch.remove_column(0)
        for first, last in itertools.pairwise([0, *(change + 1 for change in changes), len(part)]):
            yield part[first].as_py(), rows.slice(first, last - first)


def _previous_drift(connection: duckdb.DuckDBPyConnection, previous: Snapshot | None) -> None:
    paths = [str(path) for path in previous.parquet("drift")] if previous else []
    if paths:
        open_files(connection, "previous_drift", paths)
    else:
        connection.register("previous_drift", TABLES["drift"].empty())


def _sorted(relation: str, table: Table) -> str:
    columns = ", ".join(f'"{name}"' for name in table.names)
    order = ", ".join(f'"{name}" nulls last' for name in table.sort)
    return f"select {columns} from {relation} order by {order}"


def _files(folder: Path, without: Container[str] = ()) -> dict[str, dict[str, Any]]:
    return {
        name: {"sha256": files.sha256(path), "size_bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (name := path.relative_to(folder).as_posix()) not in without
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def inputs_key(inputs: Any) -> str:
    """Digest of all that a snapshot is made from; equal keys give equal snapshots."""
    return digest(json.dumps(inputs, sort_keys=True))
