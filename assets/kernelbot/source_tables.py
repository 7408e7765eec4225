"""The tables about submissions' sources: of those that are read now, and of those that were read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assets.kernelbot.terms import SOURCE
from assets.submission_sources import changes, kept
from assets.submission_sources.build import (
    Conflict,
    Depth,
    Source,
    build_artifacts,
    build_families,
    known_sources,
    read_before,
    read_sources,
    unread,
    version,
)
from assets.submission_sources.kept import Carried
from warehouse.contracts import TABLES
from warehouse.parts import Part, PartStore, PartWriter
from warehouse.raw import Collection, RawFile

TABLE_NAMES = ("artifacts", "techniques", "changes", "artifact_families", "artifact_texts", "change_texts")


def versions() -> list[str]:
    """Versions of all that makes these tables."""
    return [version(), changes.VERSION, kept.VERSION]


@dataclass
class SourceTables:
    """Makes the tables about sources, step by step.

    Attributes:
        store: the parts.
        collection: the files.
        depth: what is made of sources that are read; None reads none.
        before: what the latest snapshot has of sources.
        temporary: where large tables lie meanwhile.
        sources: those that are read.
    """

    store: PartStore
    collection: Collection
    depth: Depth | None
    before: Part | None
    temporary: Path
    sources: Sequence[Source] = field(init=False)
    _conflicts: Sequence[Conflict] = ()

    def __post_init__(self) -> None:
        self.sources = read_sources(self.store, self.collection.files) if self.depth else ()

    def known(self, stated: pa.Table, rows: Sequence[Path]) -> pa.Table:
        """What is known of each submission's source: what is read, else was read before, else is only stated.

        Args:
            stated: digests that a file states, as `KNOWN_SOURCES`.
            rows: the typed rows of all files.
        """
        known, self._conflicts = known_sources(
            self.sources, kept.overlaid(stated, self.before, rows, self.temporary), self.temporary
        )
        return known

    def drift(self, files: Mapping[str, RawFile]) -> list[dict[str, Any]]:
        """Rows of `drift` for what contradicts itself about sources."""
        rows = [
            {
                "source": SOURCE,
                "locator": conflict.locator,
                "field": "code",
                "kind": "conflict",
                "detail": conflict.detail,
                "first_seen_at": files[conflict.locator].fetched_at,
            }
            for conflict in self._conflicts
        ]
        seen_now = {source.file.locator for source in self.sources}
        return [*rows, *(kept.drift(self.before, files.keys() - seen_now) if self.before else ())]

    def write(self, writer: PartWriter, known: pa.Table, parts: Iterable[Part]) -> dict[str, list[Path]]:
        """Write all tables: for each name its files, which may be in other parts.

        Args:
            writer: takes what is in no other part.
            known: what `known` gave.
            parts: parts with files of `submissions` and `runs`.
        """
        parts = list(parts)
        submissions, runs = ([part.path(name) for part in parts] for name in ("submissions", "runs"))
        found: dict[str, list[Path]] = {name: [] for name in TABLE_NAMES}

        def add(made: Mapping[str, Iterable[str]]) -> None:
            for name, paths in made.items():
                found.setdefault(name, []).extend(self.store.root / path for path in paths)

        if self.depth:
            add(build_artifacts(self.store, self.sources, self.depth, self.temporary))
            sketches = [path.relative_to(self.store.root).as_posix() for path in found.pop("sketches")]
            families = build_families(self.store, sketches, submissions, self.sources, self.temporary)
            add({"artifact_families": families})
        add(changes.build_changes(self.store, submissions, runs, self.sources, self.depth or "index", self.temporary))
        by_digest = unread(known, self.sources, self.temporary)
        if self.before:
            texts = self.depth != "index"
            before = read_before(self.store, self.collection.files)
            carried = Carried(self.before, writer, known, self.sources, before, texts=texts, temporary=self.temporary)
            carried.write_families(submissions)
            # Those that are built now and what was known of them are one table.
            carried.write_changes(found.pop("changes"))
            for name, paths in carried.files.items():
                found.setdefault(name, []).extend(paths)
            without = pc.is_in(by_digest["source_digest"], carried.artifacts["source_digest"].combine_chunks())
            by_digest = by_digest.filter(pc.invert(without))
        artifacts = _known_by_digest(by_digest)
        writer.write("artifacts", artifacts, artifacts.schema)
        found["artifacts"].append(writer.part.path("artifacts"))
        return found


def _known_by_digest(known: pa.Table) -> pa.Table:
    """Rows of `artifacts` for source texts that are known by digest and size alone."""
    schema, count = TABLES["artifacts"].arrow_schema(), known.num_rows
    stated = {
        "source_digest": known["source_digest"],
        "size_bytes": known["source_bytes"],
        "license": pa.repeat("unknown", count),
        "text_stored": pa.repeat(False, count),
    }
    return pa.table([stated.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema)
