"""What each submission changed against its author's last earlier one on the board."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.submission_sources import diffs, texts
from assets.submission_sources.build import ROOM, Depth, Source, parts_of, spool, tables_of
from assets.submission_sources.connections import bounded, memory_of
from assets.submission_sources.scratch import Scratch
from warehouse.contracts import TABLES
from warehouse.database import connect, open_files, with_enough_memory
from warehouse.memory import give_back
from warehouse.parts import Part, PartStore, PartWriter, part_key
from warehouse.statements import statement
from warehouse.texts import write_texts

VERSION = "changes-1"
CHANGES = TABLES["changes"].arrow_schema()
# A pair of texts and how they differ; `diff` only where texts are mirrored.
DIFFERENCES = pa.schema(
    [
        ("previous_digest", pa.string()),
        ("source_digest", pa.string()),
        ("lines_added", pa.int64()),
        ("lines_removed", pa.int64()),
        ("line_endings_changed", pa.bool_()),
        ("diff", pa.string()),
    ]
)
_CHUNK_BYTES = 8 << 20
_CHUNK_PAIRS = 8192


def build_changes(
    store: PartStore,
    submissions: Sequence[Path],
    runs: Sequence[Path],
    sources: Sequence[Source],
    depth: Depth,
    temporary: Path,
) -> dict[str, list[str]]:
    """Parts of `changes`, and of `change_texts` when texts are mirrored: files relative to the store, for each table.

    Args:
        store: the parts.
        submissions: files of the table `submissions`.
        runs: files of the table `runs`.
        sources: what was read; where it is nothing, there are no counts of lines.
        depth: whether the texts of the changes are kept.
        temporary: where texts lie meanwhile.
    """
    named = part_key(
        [sorted(path.as_posix() for path in paths) for paths in (submissions, runs)],
        sorted(source.file.content_digest for source in sources),
        VERSION,
        diffs.VERSION,
        depth,
    )
    stage = f"{ROOM}/changes"
    part = store.find(stage, named)
    if part is None:
        pairs = _pairs(submissions, sources, temporary)
        give_back()
        # What holds large tables is closed while texts are compared, and these are let go thereafter.
        compared = _differences(store, pairs, sources, depth, temporary)
        del pairs
        give_back()

        def make(memory: int, threads: int | None) -> None:
            with store.making(stage, named, {}) as writer:
                with connect(temporary=temporary, memory=memory, threads=threads) as connection:
                    _open_successions(connection, submissions)
                    open_files(connection, "runs", runs)
                    ratios = statement("submission_sources/value_ratios")
                    connection.execute(f"create temp table value_ratios as {ratios}")
                    _open_differences(connection, compared)
                    rows = connection.sql(statement("submission_sources/changes")).to_arrow_reader(16_384)
                    writer.write("changes", (batch.cast(CHANGES) for batch in rows), CHANGES)
                if depth == "mirror":
                    path = writer.part.path("change_texts")
                    writer.counts["change_texts"] = _write_diffs(path, submissions, compared, temporary)

        with_enough_memory(memory_of([*submissions, *runs]), make, threads=1)
        part = Part(store.root / stage / named)
    return {
        name: [path.relative_to(store.root).as_posix() for path in tables_of(part, name)]
        for name in ("changes", "change_texts")
    }


def _pairs(submissions: Sequence[Path], sources: Sequence[Source], temporary: Path) -> pa.Table:
    """The pairs of different texts that follow each other, of those where both were read, each once and in order.

    As numbers, since pairs of digests would be most of what an ingest holds.
    """
    if not sources:
        return DIFFERENCES.empty_table().select(["previous_digest", "source_digest"])
    columns = [
        pq.read_table(source.part.path("rows"), partitioning=None, columns=["source_digest"]).column(0)
        for source in sources
    ]
    digests = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()))
    digests = digests.take(pc.array_sort_indices(digests)).drop_null()
    del columns
    found = [np.empty(0, np.int64)]
    with bounded(temporary, submissions) as connection:
        open_files(connection, "submissions", submissions)
        for batch in connection.sql(statement("submission_sources/successions")).to_arrow_reader(16_384):
            previous, this = (
                pc.fill_null(pc.index_in(batch.column(name), digests), -1).to_numpy().astype(np.int64)
                for name in ("previous_digest", "source_digest")
            )
            both = (previous >= 0) & (this >= 0) & (previous != this)
            found.append(previous[both] << 32 | this[both])
    numbers = np.unique(np.concatenate(found))
    places = [pa.array(part.astype(np.int32)) for part in (numbers >> 32, numbers & 0xFFFF_FFFF)]
    named = [pa.DictionaryArray.from_arrays(part, digests) for part in places]
    return pa.table(named, ["previous_digest", "source_digest"])


def _differences(store: PartStore, pairs: pa.Table, sources: Sequence[Source], depth: Depth, temporary: Path) -> Part:
    """How the texts of some pairs differ, where both were read; each pair is compared once."""
    stage = f"{ROOM}/differences"
    content = hashlib.sha256()
    for batch in pairs.to_batches(max_chunksize=16_384):
        content.update("\n".join(map(" ".join, zip(*batch.to_pydict().values(), strict=True))).encode())
    key = part_key(content.hexdigest(), sorted(source.file.content_digest for source in sources), diffs.VERSION, depth)
    if part := store.find(stage, key):
        return part
    made_by = f"{diffs.VERSION}/{depth}"
    with store.making(stage, key, {"version": made_by}) as writer, Scratch(temporary / f"pairs-{key}") as scratch:
        left = _carry_over(writer, parts_of(store, stage, made_by), pairs, temporary)
        spool(sources, _digests_of(left), scratch, temporary)
        for number, table in enumerate(_compared(left, scratch, depth)):
            writer.write(f"differences-{number}", table, DIFFERENCES)
    return Part(store.root / stage / key)


def _digests_of(pairs: pa.Table) -> pa.Array:
    """The digests of some pairs, each once."""
    columns = [pairs[name].unique().cast(pa.string()) for name in pairs.column_names]
    return pc.unique(pa.chunked_array(columns, pa.string()))


def _carry_over(writer: PartWriter, older: Sequence[Part], pairs: pa.Table, temporary: Path) -> pa.Table:
    """Write what earlier parts found about some pairs; the others."""
    with bounded(temporary, [path for part in older for path in tables_of(part, "differences")]) as connection:
        for number, part in enumerate(older):
            paths = tables_of(part, "differences")
            if not paths:
                continue
            open_files(connection, "older", paths)
            connection.register("wanted", pairs)
            carried = connection.sql(statement("submission_sources/known_pairs")).to_arrow_reader(1024)
            writer.write(f"differences-carried-{number}", (batch.cast(DIFFERENCES) for batch in carried), DIFFERENCES)
            pairs = connection.sql(statement("submission_sources/new_pairs")).to_arrow_table().combine_chunks()
    return pairs


def _compared(pairs: pa.Table, scratch: Scratch, depth: Depth) -> Iterator[pa.Table]:
    rows: list[dict[str, object]] = []
    size = 0
    for batch in pairs.to_batches(max_chunksize=4096):
        for previous_digest, source_digest in zip(*batch.to_pydict().values(), strict=True):
            old, new = scratch.get(previous_digest), scratch.get(source_digest)
            if old is None or new is None:
                continue
            found = diffs.difference(old, new, with_diff=depth == "mirror")
            rows.append({"previous_digest": previous_digest, "source_digest": source_digest, **vars(found)})
            size += len(found.diff or "")
            if size >= _CHUNK_BYTES or len(rows) == _CHUNK_PAIRS:
                yield pa.Table.from_pylist(rows, schema=DIFFERENCES)
                rows, size = [], 0
    if rows:
        yield pa.Table.from_pylist(rows, schema=DIFFERENCES)


def _open_successions(connection: duckdb.DuckDBPyConnection, submissions: Sequence[Path]) -> None:
    open_files(connection, "submissions", submissions)
    connection.execute(f"create temp table successions as {statement('submission_sources/successions')}")


def _open_differences(connection: duckdb.DuckDBPyConnection, compared: Part) -> None:
    if paths := tables_of(compared, "differences"):
        open_files(connection, "differences", paths)
    else:
        connection.from_arrow(DIFFERENCES.empty_table()).create_view("differences", replace=True)


def _write_diffs(path: Path, submissions: Sequence[Path], compared: Part, temporary: Path) -> int:
    """Write the diffs in order of the submissions; they are found by their pair, so that none has to be sorted."""
    # What the changes were made with; diffs and their index come on top.
    give_back()
    with Scratch(temporary / "diffs") as scratch, bounded(temporary, submissions) as connection:
        for table in tables_of(compared, "differences"):
            for batch in pq.ParquetFile(table).iter_batches(256, columns=["previous_digest", "source_digest", "diff"]):
                for previous_digest, source_digest, diff in zip(*batch.to_pydict().values(), strict=True):
                    if diff is not None:
                        scratch.add(_pair(previous_digest, source_digest), diff.encode())
        _open_successions(connection, submissions)
        successions = connection.execute(
            "select submission_key, previous_digest, source_digest from successions "
            "where previous_digest is not null and source_digest is not null order by submission_key"
        )

        def found() -> Iterator[tuple[str, str]]:
            while rows := successions.fetchmany(4096):
                for submission_key, previous_digest, source_digest in rows:
                    if (diff := scratch.get(_pair(previous_digest, source_digest))) is not None:
                        yield submission_key, diff.decode()

        return write_texts(path, texts.change_texts(found()), texts.CHANGE_TEXTS)


def _pair(previous_digest: str, source_digest: str) -> str:
    return "sha256:" + hashlib.sha256(f"{previous_digest} {source_digest}".encode()).hexdigest()
