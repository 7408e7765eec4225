"""What a run works with: the home, locked for as long as the run lasts, and what was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import dagster as dg
import pyarrow.parquet as pq
from pydantic import Field, field_validator

from assets.kernelbot.build import PATTERNS as KERNELBOT_FILES
from assets.sol_execbench.build import PATTERNS as SOL_EXECBENCH_FILES
from assets.submission_sources.build import Depth
from pipelines.instance import fail_dead_runs
from pipelines.logs import configure
from pipelines.sol_api import PUBLIC_URL, SolApi
from warehouse import files
from warehouse.contracts import RANKING_POLICY
from warehouse.errors import KernelmartError, SnapshotError, UnreadableError
from warehouse.home import Home, read_json
from warehouse.life import recover
from warehouse.parts import PartStore
from warehouse.raw import Collection, RawStore
from warehouse.snapshots import named

try:
    # The Hub's client does this as soon as it is imported, and writes a line of its own where it fails.
    _ = urlsplit(os.environ.get("HF_ENDPOINT", "")).port
    from pipelines.hub import HubClient
except ValueError as error:
    raise UnreadableError("HF_ENDPOINT is no URL; correct it") from error

SOL_INTERVAL_MS = 120
_LACKING_SHOWN = 5
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
        """Hold the home's lock for the run, and put right what a run that died left behind."""
        if self.held:
            yield self
            return
        configure()
        with self.home.locked():
            recover(self.home)
            if context.instance is not None:
                fail_dead_runs(context.instance, context.run.run_id if context.run else None)
            yield self


class Upstream(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The services that are pulled from; by default those that the environment names, else the real ones.

    Attributes:
        hub_endpoint: the Hugging Face Hub (`HF_ENDPOINT`). The client takes its token from the environment itself.
        sol_url: the SOL-ExecBench leaderboard's API (`KERNELMART_SOL_URL`).
        sol_interval_ms: milliseconds between the starts of two requests to it (`KERNELMART_SOL_INTERVAL_MS`).
        retries: how often a step runs again in which a source could not be reached.
        first_wait_seconds: before the first of those; see `seconds_before_retry`.
    """

    hub_endpoint: str | None = None
    sol_url: str | None = None
    sol_interval_ms: int | None = None
    retries: int = 2
    first_wait_seconds: float = 60

    @property
    def hub(self) -> HubClient:
        """Client of the Hub."""
        return HubClient(self.hub_endpoint or os.environ.get("HF_ENDPOINT") or None)

    @property
    def sol_api(self) -> SolApi:
        """Client of the leaderboard's API.

        Raises:
            KernelmartError: where the interval that the environment gives is no number of milliseconds.
        """
        stated = os.environ.get("KERNELMART_SOL_INTERVAL_MS") or str(SOL_INTERVAL_MS)
        if not stated.isascii() or not stated.isdecimal() or len(stated) > 6:
            raise KernelmartError(f"KERNELMART_SOL_INTERVAL_MS is {stated!r}; give a whole number of milliseconds")
        interval = self.sol_interval_ms if self.sol_interval_ms is not None else int(stated)
        return SolApi(self.sol_url or os.environ.get("KERNELMART_SOL_URL") or PUBLIC_URL, interval / 1000)


class Request(dg.ConfigurableResource):  # type: ignore[type-arg]
    """What an ingest was asked for.

    Attributes:
        folder: a folder with saved files, one folder a source, to be read instead of what the services have; the
            files of a source that has none there are those of the last ingest.
        replay: id of a snapshot whose originals are to be read again, from the raw store alone.
        sources: the sources asked for; all where empty.
        files: locators of the only files or answers asked for, which are fetched again even if they are known; all
            else is as the last ingest left it.
        known_sources: a Parquet file with digests of submissions' sources.
        policy: the ranking policy.
        code: what is made of the submissions' sources: none of them read, read for their digests and what they prove
            (index), or their texts kept, too (mirror).
        force: content that was withdrawn may be published again.
        accept_loss: what has lost more than a tenth may be published.
    """

    folder: str | None = None
    replay: str | None = None
    sources: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    known_sources: str | None = None
    policy: str = RANKING_POLICY
    code: Literal["none", "index", "mirror"] = "none"
    force: bool = False
    accept_loss: bool = False

    @property
    def takes_loss(self) -> bool:
        """Whether less than before may be published: also of what is read once more, which was published once."""
        return self.accept_loss or self.replay is not None

    @field_validator("files")
    @classmethod
    def _somebodys(cls, names: list[str]) -> list[str]:
        patterns = (*KERNELBOT_FILES, *SOL_EXECBENCH_FILES)
        for name in names:
            if not any(fnmatchcase(name, pattern) for pattern in patterns):
                raise ValueError(f"no source has a file {name!r}; name one as 'stale' lines do")
        return names

    @field_validator("sources")
    @classmethod
    def _known(cls, sources: list[str]) -> list[str]:
        for source in sources:
            if source not in SOURCE_FOLDERS:
                raise ValueError(f"unknown source {source!r}; there are {', '.join(SOURCE_FOLDERS)}")
        return sources

    @property
    def depth(self) -> Depth | None:
        """What is made of sources; None where none is read."""
        return None if self.code == "none" else self.code

    def collect(
        self,
        warehouse: Warehouse,
        source: str,
        room: str,
        patterns: Iterable[str],
        pull: Callable[[Collection | None, frozenset[str] | None], Collection],
        part: Callable[[str], Any] = str,
    ) -> Collection | None:
        """The files of a source: new ones where it was asked for, else its last good ones.

        Args:
            warehouse: where they are kept.
            source: the source.
            room: its folder below the one with saved files.
            patterns: which files of that folder are its.
            pull: takes the last good files and the locators of those to fetch again, None for all that are new; gets
                those that the service has now.
            part: what a locator is about; locators about the same go together.
        """
        if self.replay:
            warehouse.state.write(f"asked/{source}", False)
            return replayed(warehouse, self.replay).get(source)
        folder = Path(self.folder) / room if self.folder else None
        again = frozenset(name for name in self.files if any(fnmatchcase(name, pattern) for pattern in patterns))
        asked = (
            (not self.sources or source in self.sources)
            and (folder is None or folder.is_dir())
            and (not self.files or bool(again))
        )
        # A source of which a few files were looked at was not looked at.
        warehouse.state.write(f"asked/{source}", asked and not again)
        last_good = warehouse.raw.last_good(source)
        if not asked:
            return Collection(source, last_good.files) if last_good else None
        if folder:
            collection = warehouse.raw.collect_folder(source, folder, patterns)
        else:
            collection = pull(last_good, again or None)
        if again:
            seen = warehouse.home.read_status().get("sources", {}).get(source, {})
            collection = renewed(collection, last_good, again, part, seen.get("stale_because", ()))
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


def renewed(
    collection: Collection,
    last_good: Collection | None,
    again: frozenset[str],
    part: Callable[[str], Any],
    stale_because: Iterable[str],
) -> Collection:
    """The last good files of a source with some of them replaced.

    Args:
        collection: what the source has now.
        last_good: the files of the last completed ingest.
        again: locators of the files to take from `collection`, with those that are about the same.
        part: what a locator is about.
        stale_because: why files were stale at the last ingest; those that are not replaced still are.

    Raises:
        UnreadableError: where there is no such file, now or before.
    """
    if last_good is None:
        raise UnreadableError(f"{collection.source}: nothing of it is known yet; ingest all of it first")
    wanted = {part(name) for name in again}
    unreadable = tuple(entry for entry in collection.unreadable if part(entry[0]) in wanted)
    known = {file.locator for file in (*collection.files, *last_good.files)} | {locator for locator, _ in unreadable}
    if lacking := sorted(again - known):
        raise UnreadableError(f"{collection.source} has no {lacking[0]}; name a file as 'stale' lines do")
    new = [file for file in collection.files if part(file.locator) in wanted]
    old = [file for file in last_good.files if part(file.locator) not in wanted]
    left = [line for line in stale_because if part(line.partition(": ")[0]) not in wanted]
    stale = tuple(dict.fromkeys([*left, *collection.stale]))
    return Collection(collection.source, (*old, *new), stale, unreadable)


def replayed(warehouse: Warehouse, name: str) -> dict[str, Collection]:
    """The collections, by source, that a published snapshot was made from.

    Raises:
        SnapshotError: where there is no such snapshot, or an original of it is no longer kept.
    """
    snapshot = named(warehouse.home, name)
    columns = ["source", "locator", "content_digest", "revision", "verified", "size_bytes", "fetched_at"]
    rows = pq.read_table(snapshot.parquet("source_files"), columns=columns).to_pylist()
    collections, lacking = warehouse.raw.of_snapshot(snapshot.manifest["inputs"], rows)
    if lacking:
        shown = ", ".join(lacking[:_LACKING_SHOWN])
        more = f" and {len(lacking) - _LACKING_SHOWN} more" if len(lacking) > _LACKING_SHOWN else ""
        raise SnapshotError(f"{snapshot.snapshot_id} cannot be replayed: the raw store lacks {shown}{more}")
    return {collection.source: collection for collection in collections}


def folder_problem(folder: Path, sources: list[str]) -> str | None:
    """Why nothing can be read from a folder; None where something can."""
    if not folder.is_dir():
        return f"{folder}: this is no folder; name one with the folders {' and '.join(SOURCE_FOLDERS.values())}"
    wanted = [room for source, room in SOURCE_FOLDERS.items() if not sources or source in sources]
    if not any((folder / room).is_dir() for room in wanted):
        return f"{folder}: no source is there; it must have a folder {' or '.join(wanted)}"
    return None
