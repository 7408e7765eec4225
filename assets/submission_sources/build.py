"""From the files' sources to parts of their tables: each text once, however many files have it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.kernelbot.boards import KNOWN_SOURCES
from assets.submission_sources import artifacts, families, lexing, read, techniques, texts
from assets.submission_sources.connections import bounded
from assets.submission_sources.lexing import lex
from assets.submission_sources.scratch import Scratch
from assets.submission_sources.signatures import Signatures
from assets.submission_sources.techniques import located, proven
from warehouse.contracts import TABLES
from warehouse.database import open_files
from warehouse.memory import give_back
from warehouse.parts import Part, PartStore, PartWriter, part_key
from warehouse.raw import RawFile
from warehouse.statements import statement
from warehouse.texts import write_texts

# How much is made of the sources: their digests and what they prove, or their texts too.
Depth = Literal["index", "mirror"]

ROOM = "submission_sources"
TEXTS_VERSION = "texts-1"
_ANALYSED = {
    **{name: TABLES[name].arrow_schema() for name in ("artifacts", "techniques")},
    "sketches": families.SKETCHES,
}
# Texts whose findings are held before they are written.
_CHUNK_TEXTS = 2048


@dataclass(frozen=True)
class Source:
    """A submissions file whose sources were read, with the part that has its rows."""

    file: RawFile
    part: Part


@dataclass(frozen=True)
class Conflict:
    """A contradiction about a submission's source, in the file where it was seen."""

    locator: str
    detail: str


def version() -> str:
    """Version of all that is found in a text; another one has every text looked at anew."""
    return "/".join((lexing.VERSION, artifacts.VERSION, techniques.version(), families.VERSION))


def read_sources(store: PartStore, files: Iterable[RawFile]) -> list[Source]:
    """Read the sources of every file that has some and is kept whole, in order of the files' names.

    Raises:
        UnreadableError: for a file whose sources cannot be read.
    """
    whole = sorted((file for file in files if file.verified), key=lambda file: file.locator)
    return [Source(file, part) for file in whole if (part := _read_file(store, file)) is not None]


def read_before(store: PartStore, files: Iterable[RawFile]) -> list[Source]:
    """The files of this content whose sources were read before, kept whole now or not, in order of their names.

    Their texts can only be had again from those that are kept whole.
    """
    found = []
    for file in sorted(files, key=lambda file: file.locator):
        part = store.find(*_place(file))
        if part is not None and part.facts["has_sources"]:
            found.append(Source(file, part))
    return found


def remembered(
    submissions: Sequence[Path], runs: Sequence[Path], artifacts: Sequence[Path], temporary: Path
) -> pa.Table:
    """What an earlier snapshot has of sources that were read, as `KNOWN_SOURCES`, those that are none among them.

    Args:
        submissions: its files of the table `submissions`.
        runs: its files of the table `runs`.
        artifacts: its files of the table `artifacts`.
        temporary: where large tables lie meanwhile.
    """
    if not submissions or not runs or not artifacts:
        return KNOWN_SOURCES.empty_table()
    with bounded(temporary, submissions) as connection:
        for name, paths in (("submissions", submissions), ("runs", runs), ("artifacts", artifacts)):
            open_files(connection, name, paths)
        return connection.sql(statement("submission_sources/remembered")).to_arrow_table().cast(KNOWN_SOURCES)


def _rows_of(sources: Iterable[Source]) -> list[Path]:
    return [source.part.path("rows") for source in sources]


def _place(file: RawFile) -> tuple[str, str]:
    return f"{ROOM}/rows", part_key(file.content_digest, read.VERSION)


def _read_file(store: PartStore, file: RawFile) -> Part | None:
    stage, key = _place(file)
    part = store.find(stage, key)
    if part is None:
        has = read.has_sources(file)
        with store.making(stage, key, {"has_sources": has}) as writer:
            if has:
                file.require_whole()
                writer.write("rows", read.digests(file), read.ROWS)
        part = Part(store.root / stage / key)
    return part if part.facts["has_sources"] else None


def known_sources(sources: Sequence[Source], known: pa.Table, temporary: Path) -> tuple[pa.Table, list[Conflict]]:
    """What is known of each submission's source, as `KNOWN_SOURCES`, each submission once; and what contradicts it.

    A row with a null digest says that the source was read and there is none. Bytes that were read win over a digest
    that was known; a null never does.

    Args:
        sources: what was read.
        known: digests known without reading, as `KNOWN_SOURCES`, each submission once.
        temporary: where large tables lie meanwhile.
    """
    with bounded(temporary, _rows_of(sources)) as connection:
        open_rows(connection, sources)
        connection.register("known_sources", known)
        table = connection.sql(statement("submission_sources/known")).to_arrow_table().cast(KNOWN_SOURCES)
        rows = connection.execute(statement("submission_sources/conflicts")).fetchall()
    return table, [Conflict(locator, detail) for locator, detail in rows]


def unread(known: pa.Table, sources: Sequence[Source], temporary: Path) -> pa.Table:
    """The rows of `KNOWN_SOURCES` whose digest is known and whose text was not read, each digest once and in order."""
    with bounded(temporary, _rows_of(sources)) as connection:
        open_rows(connection, sources)
        connection.register("known_sources", known)
        return connection.sql(statement("submission_sources/unread")).to_arrow_table().cast(KNOWN_SOURCES)


def build_artifacts(store: PartStore, sources: Sequence[Source], depth: Depth, temporary: Path) -> dict[str, list[str]]:
    """Parts of `artifacts`, `techniques` and `sketches`, and of `artifact_texts` when texts are mirrored.

    Files relative to the store, for each table; every digest is in one of them. Texts that an earlier part of this
    version has are not looked at again.
    """
    made: dict[str, list[str]] = {name: [] for name in (*_ANALYSED, "artifact_texts")}
    for source, rows in _assigned(sources, temporary):
        key = _digests_key(rows)
        part = _analysed(store, source, rows, key, depth, temporary)
        _gather(made, store, part)
        if depth == "mirror":
            _gather(made, store, _mirrored(store, source, rows, key, temporary))
    return made


def build_families(
    store: PartStore, sketches: Sequence[str], submissions: Sequence[Path], sources: Sequence[Source], temporary: Path
) -> list[str]:
    """Parts of `artifact_families`, relative to the store.

    Args:
        store: the parts.
        sketches: files of `build_artifacts`.
        submissions: files of the table `submissions`.
        sources: what was read.
        temporary: where texts in question lie meanwhile.
    """
    key = part_key(sorted(sketches), families.VERSION)
    placed = _placed(store, [store.root / path for path in sketches], key, sources, temporary)
    stage, named = f"{ROOM}/families", part_key(key, sorted(path.as_posix() for path in submissions), families.VERSION)
    part = store.find(stage, named)
    if part is None:
        with store.making(stage, named, {}) as writer, bounded(temporary, submissions) as connection:
            open_files(connection, "placed", [placed.path("placed")])
            open_files(connection, "submissions", submissions)
            found = connection.sql(statement("submission_sources/families")).to_arrow_reader(16_384)
            writer.write("artifact_families", found, found.schema)
        part = Part(store.root / stage / named)
    return [part.path("artifact_families").relative_to(store.root).as_posix()]


def spool(sources: Sequence[Source], wanted: pa.Array, scratch: Scratch, temporary: Path) -> None:
    """Put the texts with some digests into a scratch file, read from whichever files have them."""
    if not len(wanted):
        return
    assigned = _assigned(sources, temporary, pa.table({"source_digest": wanted}))
    # Hundreds of thousands of digests: who asked for them may need them no more.
    del wanted
    for source, rows in assigned:
        _fill(scratch, source, rows)


def _assigned(
    sources: Sequence[Source], temporary: Path, chosen: pa.Table | None = None
) -> Iterator[tuple[Source, pa.Table]]:
    """For each file the rows (`item`, `source_digest`, in order) whose texts no earlier file and no earlier row has."""
    with bounded(temporary, _rows_of(sources)) as connection:
        open_rows(connection, sources)
        rows = connection.table("source_rows")
        if chosen is not None:
            rows = rows.join(connection.from_arrow(chosen), "source_digest", how="semi")
        rows.create_view("asked_rows")
        connection.execute(f"create temp table firsts as {statement('submission_sources/first')}")
        query = "select item, source_digest from firsts where place = ? order by item"
        assigned = [connection.sql(query, params=[place]).to_arrow_table() for place in range(len(sources))]
    del chosen, rows
    give_back()
    for source, rows in zip(sources, assigned, strict=True):
        if rows.num_rows:
            yield source, rows.combine_chunks()


def _analysed(store: PartStore, source: Source, rows: pa.Table, key: str, depth: Depth, temporary: Path) -> Part:
    stage = f"{ROOM}/analysed"
    named = part_key(key, version(), depth)
    if part := store.find(stage, named):
        return part
    older = parts_of(store, stage, version())
    with store.making(stage, named, {"version": version()}) as writer:
        rows = _carry_over(writer, older, rows, depth, temporary)
        for number, tables in enumerate(_findings(source.file, rows, depth)):
            for name, table in tables.items():
                writer.write(f"{name}-{number}", table, table.schema)
    return Part(store.root / stage / named)


def _carry_over(writer: PartWriter, older: Sequence[Part], rows: pa.Table, depth: Depth, temporary: Path) -> pa.Table:
    """Write what earlier parts found in the texts of some rows; the rows of the others."""
    if not older:
        return rows
    with bounded(temporary, [path for part in older for path in tables_of(part, "artifacts")]) as connection:
        for number, part in enumerate(older):
            open_files(connection, "older_artifacts", tables_of(part, "artifacts"))
            connection.register("wanted", rows)
            left = connection.sql(statement("submission_sources/not_carried_over")).to_arrow_table().combine_chunks()
            if left.num_rows < rows.num_rows:
                for name, schema in _ANALYSED.items():
                    open_files(connection, "older", tables_of(part, name))
                    query = connection.sql(statement("submission_sources/carried_over")).to_arrow_reader(4096)
                    carried = (_stored(batch.cast(schema), depth) for batch in query)
                    writer.write(f"{name}-carried-{number}", carried, schema)
            rows = left
    return rows


def _findings(file: RawFile, rows: pa.Table, depth: Depth) -> Iterator[dict[str, pa.Table]]:
    """What is found in the texts of some rows, some thousand texts at a time."""
    extractor = techniques.version()
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _ANALYSED}
    stream = located(text for _, text in read.texts(file, rows["item"].to_numpy()))
    for number, (digest, (text, places)) in enumerate(zip(_digests(rows), stream, strict=True), start=1):
        lexed = lex(text)
        artifact = artifacts.describe(lexed)
        found["artifacts"].append(
            {
                "source_digest": digest,
                "size_bytes": artifact.size_bytes,
                "lines": artifact.lines,
                "language": artifact.language,
                "media_type": artifact.media_type,
                "license": "unknown",
                "text_stored": depth == "mirror",
                "declared_leaderboard": artifact.leaderboard,
                "declared_gpus": artifact.gpus,
            }
        )
        found["techniques"] += [
            {"source_digest": digest, **vars(technique), "extractor": extractor}
            for technique in proven(lexed, artifact.language, places)
        ]
        if sketch := families.sketch(lexed):
            found["sketches"].append({"source_digest": digest, **vars(sketch)})
        if number % _CHUNK_TEXTS == 0 or number == rows.num_rows:
            yield {name: pa.Table.from_pylist(entries, schema=_ANALYSED[name]) for name, entries in found.items()}
            found = {name: [] for name in _ANALYSED}
            give_back()


def _mirrored(store: PartStore, source: Source, rows: pa.Table, key: str, temporary: Path) -> Part:
    """The texts of some rows, sorted, in a file for each first digit of their digests."""
    stage = f"{ROOM}/texts"
    named = part_key(key, TEXTS_VERSION)
    if part := store.find(stage, named):
        return part
    with store.making(stage, named, {}) as writer, Scratch(temporary / f"texts-{named}") as scratch:
        _fill(scratch, source, rows)
        for prefix, digests in groupby(scratch.digests(), key=lambda digest: digest[len("sha256:")]):
            stored = ((digest, scratch.get(digest) or b"") for digest in digests)
            name = f"artifact_texts-{prefix}"
            batches = texts.artifact_texts(stored)
            writer.counts[name] = write_texts(writer.part.path(name), batches, texts.ARTIFACT_TEXTS)
    return Part(store.root / stage / named)


def _placed(store: PartStore, sketches: Sequence[Path], key: str, sources: Sequence[Source], temporary: Path) -> Part:
    """Which texts are in which families, as `families.PLACED`."""
    stage = f"{ROOM}/placed"
    if part := store.find(stage, key):
        return part
    small = [name for name in families.SKETCHES.names if name != "signature"]
    tables = [pq.read_table(path, partitioning=None, columns=small, use_threads=False) for path in sketches]
    table = pa.concat_tables([families.SKETCHES.empty_table().select(small), *tables])
    with Signatures(_signatures(sketches), families.PERMUTATIONS, temporary) as signatures:
        search = families.Search(table, signatures, _subset(store, stage, table["source_digest"]))
        del tables, table
        give_back()
        with (
            store.making(stage, key, {"version": families.VERSION}) as writer,
            Scratch(temporary / f"families-{key}") as scratch,
        ):
            spool(sources, pa.array(search.in_question(), pa.string()), scratch, temporary)
            search.decide(scratch.get)
            writer.write("placed", search.placed(), families.PLACED)
    return Part(store.root / stage / key)


def _signatures(sketches: Sequence[Path]) -> Iterator[pa.FixedSizeBinaryArray]:
    for path in sketches:
        for batch in pq.ParquetFile(path).iter_batches(4096, columns=["signature"]):
            yield batch.column(0)


def _subset(store: PartStore, stage: str, digests: pa.ChunkedArray) -> pa.Table | None:
    """The largest earlier finding about some of these texts and no others."""
    best: pa.Table | None = None
    for part in parts_of(store, stage, families.VERSION):
        table = part.read("placed")
        if best is None or table.num_rows > best.num_rows:
            known = pc.is_in(table["source_digest"], value_set=digests.combine_chunks())
            best = table if pc.all(known).as_py() else best
    return best


def parts_of(store: PartStore, stage: str, made_by: str) -> list[Part]:
    """The whole parts of a stage that one version made."""
    keys = sorted(path.parent.name for path in (store.root / stage).glob("*/part.json"))
    found = [part for key in keys if (part := store.find(stage, key)) is not None]
    return [part for part in found if part.facts.get("version") == made_by]


def tables_of(part: Part, name: str) -> list[Path]:
    """Files of a table in a part that may have it in several pieces."""
    return [part.path(table) for table in part.facts["rows"] if table.partition("-")[0] == name]


def _gather(made: dict[str, list[str]], store: PartStore, part: Part) -> None:
    for name in made:
        made[name] += [path.relative_to(store.root).as_posix() for path in tables_of(part, name)]


def _fill(scratch: Scratch, source: Source, rows: pa.Table) -> None:
    stream = read.texts(source.file, rows["item"].to_numpy())
    for digest, (_, text) in zip(_digests(rows), stream, strict=True):
        scratch.add(digest, text)


def _digests(rows: pa.Table) -> Iterator[str]:
    """Digests of rows as text, a few at a time."""
    for batch in rows.select(["source_digest"]).to_batches(max_chunksize=_CHUNK_TEXTS):
        yield from batch.column(0).to_pylist()


def _stored(batch: pa.RecordBatch, depth: Depth) -> pa.RecordBatch:
    """What an earlier part says of texts, with whether this one keeps them."""
    if "text_stored" not in batch.schema.names:
        return batch
    stored = pa.repeat(pa.scalar(depth == "mirror"), batch.num_rows)
    return batch.set_column(batch.schema.get_field_index("text_stored"), batch.schema.field("text_stored"), stored)


def _digests_key(rows: pa.Table) -> str:
    key = hashlib.sha256()
    for digest in _digests(rows.sort_by("source_digest")):
        key.update(f"{digest}\n".encode())
    return key.hexdigest()


def open_rows(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> None:
    """Make `source_rows` of all files: `place` (of the file), `locator` and the columns of `read.ROWS`.

    They stay in their files: copied, they would be most of what a connection may hold.
    """
    paths = [source.part.path("rows").as_posix() for source in sources]
    places = pa.table(
        {
            "filename": pa.array(paths, pa.string()),
            "place": pa.array(range(len(sources)), pa.int64()),
            "locator": pa.array([source.file.locator for source in sources], pa.string()),
        }
    )
    connection.register("source_places", places)
    if sources:
        open_files(connection, "rows_of_sources", sorted(set(paths)), named=True)
    else:
        connection.register("rows_of_sources", read.ROWS.append(pa.field("filename", pa.string())).empty_table())
    connection.execute(f"create or replace view source_rows as {statement('submission_sources/source_rows')}")
