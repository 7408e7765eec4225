"""What a run works with: the home, locked for as long as the run lasts, and what was asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from warehouse import files
from warehouse.contracts import RANKING_POLICY
from warehouse.home import Home, read_json
from warehouse.parts import PartStore
from warehouse.raw import Collection, RawStore

# Folder of each source below the one that `--from` names.
SOURCE_FOLDERS = {"gpumode-kernelbot": "kernelbot", "sol-execbench": "sol_execbench"}


class State:
    """What one stage of a run tells the next, as JSON files of the home."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, name: str, value: Any) -> None:
        """Tell."""
        files.write_json(self._root / f"{name}.json", value)

    def read(self, name: str) -> Any:
        """Be told; None where nothing was."""
        return read_json(self._root / f"{name}.json")


class Warehouse(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The home of a run. It is locked from before the first step to after the last.

    Attributes:
        folder: the home; by default `KERNELMART_HOME` or `./data`.
        held: the caller holds the lock around the whole run.
    """

    folder: str | None = None
    held: bool = False

    @property
    def home(self) -> Home:
        """The home."""
        return Home.at(self.folder)

    @property
    def parts(self) -> PartStore:
        """Normalised parts."""
        return PartStore(self.home.tables)

    @property
    def raw(self) -> RawStore:
        """Originals."""
        return RawStore(self.home.raw)

    @property
    def state(self) -> State:
        """What the stages of a run tell each other."""
        return State(self.home.tables / "state")

    def collection(self, name: str) -> Collection | None:
        """The collection that a stage has told of; None where its source was not to be had."""
        record = self.state.read(name)
        return self.raw.collection(record) if record else None

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Warehouse]:
        """Hold the home's lock for the run."""
        del context
        with contextlib.nullcontext() if self.held else self.home.locked():
            yield self


class Request(dg.ConfigurableResource):  # type: ignore[type-arg]
    """What an ingest was asked for.

    Attributes:
        folder: a folder with saved files, one folder a source; the files of a source that has none there are those of
            the last ingest.
        sources: the sources asked for; all where empty.
        known_sources: a Parquet file with digests of submissions' sources.
        policy: the ranking policy.
    """

    folder: str | None = None
    sources: list[str] = Field(default_factory=list)
    known_sources: str | None = None
    policy: str = RANKING_POLICY

    def collect(self, warehouse: Warehouse, source: str, room: str, patterns: Iterable[str]) -> Collection | None:
        """The files of a source: new ones where it was asked for, else its last good ones."""
        folder = Path(self.folder) / room if self.folder else None
        asked = (not self.sources or source in self.sources) and folder is not None and folder.is_dir()
        warehouse.state.write(f"asked/{source}", asked)
        last_good = warehouse.raw.last_good(source)
        if not asked or folder is None:
            return Collection(source, last_good.files) if last_good else None
        collection = warehouse.raw.collect_folder(source, folder, patterns)
        return self._with_known_sources(warehouse, collection, last_good) if room == "kernelbot" else collection

    def _with_known_sources(
        self, warehouse: Warehouse, collection: Collection, last_good: Collection | None
    ) -> Collection:
        """Digests of sources are the warehouse's own knowledge: they outlive an export that lacks them."""
        name = "source_digests.parquet"
        if self.known_sources:
            file = warehouse.raw.keep_now(Path(self.known_sources), name)
            return replace(collection, files=(*(f for f in collection.files if f.locator != name), file))
        if any(file.locator == name for file in collection.files) or last_good is None:
            return collection
        known = (file for file in last_good.files if file.locator == name)
        return replace(collection, files=(*collection.files, *known))


def folder_problem(folder: Path, sources: list[str]) -> str | None:
    """Why nothing can be read from a folder; None where something can."""
    if not folder.is_dir():
        return f"{folder}: this is no folder; name one with the folders {' and '.join(SOURCE_FOLDERS.values())}"
    wanted = [room for source, room in SOURCE_FOLDERS.items() if not sources or source in sources]
    if not any((folder / room).is_dir() for room in wanted):
        return f"{folder}: no source is there; it must have a folder {' or '.join(wanted)}"
    return None
