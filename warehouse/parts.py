"""Normalised parts: folders of Parquet files, named by what they were made from, written once and then only read."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse import files, parquet
from warehouse.home import read_json
from warehouse.threads import ahead


@dataclass(frozen=True)
class Part:
    """A folder with a Parquet file a table, and `part.json` about them, written last."""

    folder: Path

    def path(self, table: str) -> Path:
        """File of a table in this part."""
        return self.folder / f"{table}.parquet"

    def read(self, table: str) -> pa.Table:
        """All rows of a table in this part."""
        return pq.read_table(self.path(table), partitioning=None)

    @property
    def facts(self) -> dict[str, Any]:
        """What was recorded about the part."""
        facts = read_json(self.folder / "part.json")
        return facts if isinstance(facts, dict) else {}


class PartWriter:
    """Fills a part that is being made."""

    def __init__(self, folder: Path) -> None:
        self.part = Part(folder)
        self.counts: dict[str, int] = {}

    def write(
        self,
        table: str,
        batches: pa.Table | Iterable[pa.RecordBatch],
        schema: pa.Schema,
        *,
        clustered_by: str | None = None,
    ) -> int:
        """Write a table of the part; the row count. Each row group has one value alone of the column `clustered_by`."""
        ready = batches.to_batches() if isinstance(batches, pa.Table) else ahead(batches)
        self.counts[table] = parquet.write_part(self.part.path(table), ready, schema, clustered_by=clustered_by)
        return self.counts[table]


class PartStore:
    """All parts of a home."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, stage: str, key: str) -> Part | None:
        """The part of a stage that was made from `key`, if it is there and whole."""
        part = Part(self.root / stage / key)
        stated = part.facts.get("sha256")
        if not isinstance(stated, dict) or not _is_whole(part, stated):
            # Not there, or no longer what was written: it is made anew.
            return None
        # What is in use stays: pruning goes by this time.
        os.utime(part.folder / "part.json")
        return part

    @contextmanager
    def making(self, stage: str, key: str, facts: dict[str, Any]) -> Iterator[PartWriter]:
        """A part to fill; it appears whole, with `facts` as they are on leaving, or not at all."""
        target = self.root / stage / key
        files.remove_tree(target)
        with files.writing_folder(target) as aside:
            writer = PartWriter(aside)
            yield writer
            digests = {name: files.sha256(writer.part.path(name)) for name in writer.counts}
            files.write_json(aside / "part.json", {**facts, "rows": writer.counts, "sha256": digests})

    def prune(self, days: float) -> None:
        """Remove the parts that nothing has used for some days."""
        oldest = time.time() - days * 86_400
        for about in list(self.root.rglob("part.json")):
            if about.stat().st_mtime < oldest:
                files.remove_tree(about.parent)


def _is_whole(part: Part, stated: dict[str, str]) -> bool:
    """Whether a part's files are there and have the digests that it states."""
    paths = [part.path(name) for name in stated]
    return all(path.is_file() for path in paths) and files.sha256_of_each(paths) == [*stated.values()]


def part_key(*inputs: Any) -> str:
    """Name of a part from what it is made of: 32 hex digits."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]
