"""From KernelBot's raw files to parts of its tables: each file is read once, and only what changed is made anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from assets.kernelbot.boards import (
    KNOWN_SOURCES,
    SmallFile,
    merge_known_sources,
    read_boards,
    read_known_sources,
)
from assets.kernelbot.facts import facts_revision, load_boards
from assets.kernelbot.normalise import VERSION, BoardListing, FileRows, Normaliser
from assets.kernelbot.read import PARSER, ROWS, SubmissionsFile, raw_json
from assets.kernelbot.source_tables import TABLE_NAMES as SOURCE_TABLES
from assets.kernelbot.source_tables import SourceTables
from assets.kernelbot.source_tables import versions as source_versions
from assets.kernelbot.terms import SOURCE
from assets.submission_sources.build import Depth, read_sources
from assets.submission_sources.kept import kept_of
from warehouse.contracts import SCHEMA_VERSION, TABLES
from warehouse.database import connect, memory_for, rows_of, with_enough_memory
from warehouse.errors import UnreadableError
from warehouse.parts import Part, PartStore, PartWriter, part_key
from warehouse.raw import Collection, RawFile
from warehouse.snapshots import Snapshot

PATTERNS = ("*.parquet",)
# The tables of the contract that this source has rows of.
TABLE_NAMES = (
    "problems", "cases", "authors", "submissions", "implementations", "protocols", "environments", "runs", "scores",
    *SOURCE_TABLES, "source_files", "rejects", "drift",
)  # fmt: skip


class _Normalised(NamedTuple):
    """What all files of runs came to: a part for each group of files, and tables, rows and counts of all of them."""

    parts: list[Part]
    shared: dict[str, pa.Table]
    rejects: list[dict[str, Any]]
    drift: list[dict[str, Any]]
    counts: dict[str, tuple[int, int]]


def read_files(
    store: PartStore, collection: Collection, last_good: Collection | None, depth: Depth | None = None
) -> Collection:
    """Read every file into typed rows; a file that cannot be read gives way to its last good content.

    With a depth, the sources of every file that is kept whole are read, too.

    Raises:
        UnreadableError: for a file that cannot be read and was never good, and where there is no file at all.
    """
    digests = "source_digests.parquet"
    if not any(file.locator != digests for file in collection.files) and not collection.unreadable:
        if last_good is None:
            raise UnreadableError(f"{SOURCE}: there is no Parquet file to read; fetch the dataset's files")
        return replace(last_good, stale=(f"{SOURCE}: there is no Parquet file to read",))

    def read(file: RawFile) -> None:
        family = _read_file(store, file).facts["family"]
        if file.locator == digests and family != "sources":
            raise UnreadableError(f"{digests}: it needs the columns submission_id, content_digest and size_bytes")
        if depth:
            read_sources(store, [file])

    return collection.with_last_good(read, last_good)


def build_tables(
    store: PartStore,
    collection: Collection,
    temporary: Path,
    depth: Depth | None = None,
    before: Snapshot | None = None,
) -> dict[str, list[str]]:
    """Parts of every table of the source: for each table name, its Parquet files relative to the store.

    A collection whose tables were made before costs one look.

    Args:
        store: the parts.
        collection: the files.
        temporary: where large tables lie meanwhile.
        depth: what is made of the sources that are read; None reads none.
        before: the latest snapshot; what it has of sources that are not read now stays.
    """
    # Where all is read, nothing is left that only the snapshot before knows.
    whole = depth is not None and all(file.verified for file in collection.files)
    known_before = kept_of(store, before, temporary) if before and not whole else None
    origins = sorted((file.locator, file.revision or "", file.verified) for file in collection.files)
    versions = (PARSER, VERSION, facts_revision(), SCHEMA_VERSION, *source_versions())
    key = part_key(collection.inputs(), origins, versions, depth, known_before and known_before.facts["sha256"])
    stage = f"{SOURCE}/tables"
    part = store.find(stage, key)
    if part is None or not all(store.find(*place) for place in _places(part)):
        with store.making(stage, key, facts := {}) as writer:
            sources = SourceTables(store, collection, depth, known_before, temporary)
            files = _make_tables(store, collection, temporary, sources, writer)
            final = (store.root / stage / key, writer.part.folder)
            facts["files"] = {
                name: [_moved(path, *final).relative_to(store.root).as_posix() for path in paths]
                for name, paths in files.items()
            }
        part = Part(store.root / stage / key)
    return dict(part.facts["files"])


def _moved(path: Path, target: Path, aside: Path) -> Path:
    """Where a file will be that may be in a folder that is still being made."""
    return target / path.name if path.parent == aside else path


def _places(part: Part) -> set[tuple[str, str]]:
    """Stage and key of every part that has files of these tables."""
    folders = {Path(file).parent for files in part.facts["files"].values() for file in files}
    return {(folder.parent.as_posix(), folder.name) for folder in folders}


def _read_file(store: PartStore, file: RawFile) -> Part:
    key = part_key(file.content_digest, PARSER)
    stage = f"{SOURCE}/rows"
    if part := store.find(stage, key):
        return part
    file.require_whole()
    reader = SubmissionsFile(file)
    facts: dict[str, Any] = {"family": reader.family, "rows_read": reader.rows_read}
    with store.making(stage, key, facts) as writer:
        if reader.family in ("per_case", "aggregate", "unknown"):
            writer.write("rows", reader.rows(), ROWS)
        facts["rejects"] = reader.rejects
        facts["drift"] = [[*entry, count] for entry, count in sorted(reader.drift.items())]
    return Part(store.root / stage / key)


def _make_tables(
    store: PartStore, collection: Collection, temporary: Path, sources: SourceTables, writer: PartWriter
) -> dict[str, list[Path]]:
    read = {file.locator: (file, _read_file(store, file)) for file in collection.files}
    listings: list[BoardListing] = []
    known_sources = KNOWN_SOURCES.empty_table()
    accounts: dict[str, SmallFile] = {}
    rows: list[FileRows] = []
    for locator, (file, part) in read.items():
        family = part.facts["family"]
        if family == "boards":
            listings, accounts[locator] = read_boards(SubmissionsFile(file))
        elif family == "sources":
            known, accounts[locator] = read_known_sources(SubmissionsFile(file))
            known_sources = merge_known_sources([known_sources, known])
        elif family in ("per_case", "aggregate"):
            rows.append(FileRows(locator, file.content_digest, family, part.path("rows")))
    known_sources = sources.known(known_sources, [one.path for one in rows])

    def normalise(memory: int, threads: int | None) -> _Normalised:
        with connect(temporary=temporary, memory=memory, threads=threads) as connection:
            normaliser = Normaliser(connection, rows, listings, load_boards(), known_sources)
            return _Normalised(
                [_files_part(store, normaliser, files) for files in normaliser.groups()],
                normaliser.shared_tables(),
                *_left_over(normaliser, read, accounts),
                normaliser.counts(),
            )

    memory = memory_for(rows_of(file.path for file in rows))
    # An ingest of sources is to hold half of what others may, and one thread needs less.
    threads = 1 if sources.sources else None
    parts, shared, rejects, drift, counts = with_enough_memory(memory, normalise, threads)
    drift += sources.drift({locator: file for locator, (file, _) in read.items()})
    shared["rejects"] = pa.Table.from_pylist(rejects, schema=TABLES["rejects"].arrow_schema())
    shared["drift"] = pa.Table.from_pylist(drift, schema=TABLES["drift"].arrow_schema())
    shared["source_files"] = _source_files(read, accounts, counts, rejects)
    files = sources.write(writer, known_sources, parts)
    for name, table in shared.items():
        writer.write(name, table, table.schema)
        files[name] = [writer.part.path(name)]
    for part in parts:
        for name in part.facts["rows"]:
            files.setdefault(name, []).append(part.path(name))
    return files


def _files_part(store: PartStore, normaliser: Normaliser, files: Sequence[FileRows]) -> Part:
    key = part_key(
        [(file.locator, file.content_digest) for file in files],
        normaliser.fingerprint(files),
        PARSER,
        VERSION,
        facts_revision(),
        SCHEMA_VERSION,
    )
    stage = f"{SOURCE}/files"
    if part := store.find(stage, key):
        return part
    with store.making(stage, key, {"locators": [file.locator for file in files]}) as writer:
        for name, schema, batches in normaliser.tables(files):
            writer.write(name, batches, schema, clustered_by="problem" if name == "runs" else None)
    return Part(store.root / stage / key)


def _left_over(
    normaliser: Normaliser, read: dict[str, tuple[RawFile, Part]], accounts: dict[str, SmallFile]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows that no table holds, and surprises in form, of all files."""
    rejects: list[dict[str, Any]] = []
    drift: dict[tuple[str, str, str, str], dict[str, Any]] = {}

    def note(file: RawFile, field: str, kind: str, detail: str) -> None:
        row = {"source": SOURCE, "locator": file.locator, "field": field, "kind": kind, "detail": detail}
        drift[file.locator, field, kind, detail] = {**row, "first_seen_at": file.fetched_at}

    for locator, (file, part) in read.items():
        origin = {"content_digest": file.content_digest, "locator": locator}
        rejects += [{**origin, **row} for row in part.facts["rejects"]]
        for field, kind, detail, count in part.facts["drift"]:
            note(file, field, kind, detail if count == 1 or not detail else f"{detail} ({count} rows)")
        if locator in accounts:
            rejects += [{**origin, **row} for row in accounts[locator].rejects]
            for conflict in accounts[locator].conflicts:
                note(file, "row", "conflict", conflict)
    for row in normaliser.boardless():
        locator, item = row.pop("locator"), str(row.pop("item"))
        origin = {"content_digest": read[locator][0].content_digest, "locator": locator}
        detail = "neither problem_name nor leaderboard_id says which board the row is of"
        raw = raw_json({name: _plain(value) for name, value in row.items()})
        rejects.append({**origin, "item": item, "reason": "NO_BOARD", "detail": detail, "raw": raw})
    for entry in normaliser.drift():
        note(read[entry["locator"]][0], entry["field"], entry["kind"], entry["detail"])
    return rejects, list(drift.values())


def _source_files(
    read: dict[str, tuple[RawFile, Part]],
    accounts: dict[str, SmallFile],
    counts: dict[str, tuple[int, int]],
    rejects: Iterable[dict[str, Any]],
) -> pa.Table:
    rejected: dict[str, int] = {}
    for row in rejects:
        rejected[row["locator"]] = rejected.get(row["locator"], 0) + 1
    rows = []
    for locator, (file, part) in read.items():
        account = accounts.get(locator)
        kept, duplicate = (account.kept, account.duplicate) if account else counts.get(locator, (0, 0))
        rows.append(
            {
                "content_digest": file.content_digest,
                "locator": locator,
                "source": SOURCE,
                "revision": file.revision,
                "verified": file.verified,
                "media_type": "application/vnd.apache.parquet",
                "size_bytes": file.size_bytes,
                "fetched_at": file.fetched_at,
                "parser": PARSER,
                "rows_read": part.facts["rows_read"],
                "rows_kept": kept,
                "rows_duplicate": duplicate,
                "rows_rejected": rejected.get(locator, 0),
            }
        )
    return pa.Table.from_pylist(rows, schema=TABLES["source_files"].arrow_schema())


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
