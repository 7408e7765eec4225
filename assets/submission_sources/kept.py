"""What the latest snapshot has of sources that are not read this time: it stays while their submissions do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from assets.kernelbot.boards import KNOWN_SOURCES
from assets.kernelbot.terms import SOURCE
from assets.submission_sources.build import ROOM, Source, open_rows, remembered
from assets.submission_sources.connections import bounded
from assets.submission_sources.read import ROWS
from warehouse import files
from warehouse.contracts import PARQUET_ONLY, TABLES
from warehouse.database import open_files
from warehouse.parts import Part, PartStore, PartWriter, part_key
from warehouse.snapshots import Snapshot
from warehouse.statements import statement
from warehouse.texts import merged, write_texts

VERSION = "kept-1"
_READ_OF = ("submissions", "runs")
_TABLES = {
    "artifacts": "lines is not null",
    "techniques": "true",
    "artifact_families": "true",
    "changes": "lines_added is not null",
    "drift": f"source = '{SOURCE}' and field = 'code' and kind = 'conflict'",
}


def kept_of(store: PartStore, snapshot: Snapshot, temporary: Path) -> Part | None:
    """What a snapshot has of sources, as a part; None where no source was ever read.

    It is the same part, by its files' digests, for snapshots that have the same of them.

    Args:
        store: the parts.
        snapshot: the snapshot.
        temporary: where large tables lie meanwhile.
    """
    tables = snapshot.manifest["tables"]
    stated = {name: tables.get(name, {}).get("digests") for name in (*_READ_OF, *_TABLES, *PARQUET_ONLY)}
    stage, key = f"{ROOM}/kept", part_key(stated, VERSION)
    part = store.find(stage, key)
    if part is None:
        submissions, runs, artifacts = (snapshot.parquet(name) for name in (*_READ_OF, "artifacts"))
        known = remembered(submissions, runs, artifacts, temporary)
        with store.making(stage, key, {}) as writer:
            writer.write("known", known, KNOWN_SOURCES)
            for name, condition in _TABLES.items():
                writer.write(name, _rows(snapshot, name, condition, temporary), TABLES[name].arrow_schema())
            for name in PARQUET_ONLY:
                for path in snapshot.parquet(name):
                    piece = path.stem.rpartition("-")[0]
                    own = name if piece == "all" else f"{name}-{piece}"
                    files.link(path, writer.part.path(own))
                    writer.counts[own] = pq.read_metadata(path).num_rows
        part = Part(store.root / stage / key)
    return part if part.facts["rows"]["known"] else None


def overlaid(known: pa.Table, kept: Part | None, rows: Sequence[Path], temporary: Path) -> pa.Table:
    """What is known of submissions' sources, as `KNOWN_SOURCES`: what was read before over what is only stated.

    Args:
        known: digests that a file states, as `KNOWN_SOURCES`, each submission once.
        kept: what was read before.
        rows: files with the `submission_id` of all rows that there are.
        temporary: where large tables lie meanwhile.
    """
    if kept is None or not rows:
        return known
    with bounded(temporary, rows) as connection:
        connection.register("known_sources", known)
        open_files(connection, "kept_known", [kept.path("known")])
        open_files(connection, "file_rows", rows)
        return connection.sql(statement("submission_sources/overlaid")).to_arrow_table().cast(KNOWN_SOURCES)


def drift(kept: Part, locators: Collection[str]) -> list[dict[str, Any]]:
    """Rows of `drift` about the sources of some files."""
    return [row for row in kept.read("drift").to_pylist() if row["locator"] in locators]


class Carried:
    """What is carried over from `kept` into the tables of this time, a file a table in `writer`.

    Args:
        kept: what was read before.
        writer: takes the files.
        known: what is known of each submission's source now, as `KNOWN_SOURCES`.
        sources: what is read now.
        before: what was read before of the contents that the files have now.
        texts: whether texts are carried over, too.
        temporary: where large tables lie meanwhile.
    """

    def __init__(
        self,
        kept: Part,
        writer: PartWriter,
        known: pa.Table,
        sources: Sequence[Source],
        before: Sequence[Source],
        *,
        texts: bool,
        temporary: Path,
    ) -> None:
        self._kept = kept
        self._writer = writer
        self._sources = sources
        self._texts = texts
        self._temporary = temporary
        self.files: dict[str, list[Path]] = {}
        with bounded(temporary, [kept.path("known")]) as connection:
            open_rows(connection, sources)
            connection.register("known_sources", known)
            connection.register("rows_before", ROWS.empty_table())
            if before:
                open_files(connection, "rows_before", [source.part.path("rows") for source in before])
            self._open(connection, "kept_artifacts", "artifacts")
            rows = connection.sql(statement("submission_sources/carried_artifacts"), params={"texts": texts})
            self._write("artifacts", rows)
            columns = ["source_digest", "text_stored"]
            self.artifacts = pq.read_table(self.files["artifacts"][0], partitioning=None, columns=columns)
            connection.register("carried", self.artifacts.select(["source_digest"]))
            self._open(connection, "kept_techniques", "techniques")
            self._write("techniques", connection.sql(statement("submission_sources/carried_techniques")))
        if texts:
            stored = self.artifacts.filter(self.artifacts["text_stored"])["source_digest"].to_pylist()
            self._write_texts("artifact_texts", set(stored))

    def write_families(self, submissions: Sequence[Path]) -> None:
        """Carry families over, with who was first by the submissions that there are now."""
        with bounded(self._temporary, submissions) as connection:
            open_rows(connection, self._sources)
            connection.register("carried", self.artifacts.select(["source_digest"]))
            self._open(connection, "kept_families", "artifact_families")
            connection.execute(f"create temp table placed as {statement('submission_sources/carried_families')}")
            open_files(connection, "submissions", submissions)
            self._write("artifact_families", connection.sql(statement("submission_sources/families")))

    def write_changes(self, changes: Sequence[Path]) -> None:
        """All changes, with what was counted before, and the diffs of those that are the same."""
        with bounded(self._temporary, changes) as connection:
            open_files(connection, "changes", changes)
            self._open(connection, "kept_changes", "changes")
            self._write("changes", connection.sql(statement("submission_sources/carried_changes")))
            if self._texts:
                same = connection.execute(statement("submission_sources/same_changes")).fetchall()
                self._write_texts("change_texts", {key for (key,) in same})

    def _open(self, connection: duckdb.DuckDBPyConnection, name: str, table: str) -> None:
        open_files(connection, name, [self._kept.path(table)])

    def _write(self, name: str, rows: duckdb.DuckDBPyRelation) -> None:
        schema = TABLES[name].arrow_schema()
        self._writer.write(f"{name}-kept", _streamed(rows, schema), schema)
        self.files.setdefault(name, []).append(self._writer.part.path(f"{name}-kept"))

    def _write_texts(self, name: str, wanted: set[str]) -> None:
        schema = PARQUET_ONLY[name].arrow_schema()
        for own in (own for own in self._kept.facts["rows"] if own.partition("-")[0] == name):
            path, target = self._kept.path(own), self._writer.part.path(own)
            keys = pq.read_table(path, partitioning=None, columns=[schema.names[0]]).column(0).to_pylist()
            if wanted.issuperset(keys):
                files.link(path, target)
                self._writer.counts[own] = len(keys)
            else:
                self._writer.counts[own] = write_texts(target, _chosen(path, wanted.__contains__), schema)
            self.files.setdefault(name, []).append(target)


def _rows(snapshot: Snapshot, name: str, condition: str, temporary: Path) -> Iterator[pa.RecordBatch]:
    schema = TABLES[name].arrow_schema()
    paths = snapshot.parquet(name)
    if not paths or pq.read_schema(paths[0]).names != schema.names:
        # An older schema had none, or had not read it.
        return
    with bounded(temporary) as connection:
        open_files(connection, "published", paths)
        order = ", ".join(f'"{column}" nulls last' for column in TABLES[name].sort)
        yield from _streamed(connection.sql(f"from published where {condition} order by {order}"), schema)


def _streamed(rows: duckdb.DuckDBPyRelation, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return (batch.cast(schema) for batch in rows.to_arrow_reader(16_384))


def _chosen(path: Path, wanted: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
    for batch in merged([path]):
        chosen = batch.filter(pa.array([wanted(key) for key in batch.column(0).to_pylist()], pa.bool_()))
        if chosen.num_rows:
            yield chosen
