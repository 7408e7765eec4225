"""What of a raw store is damaged, and what nothing needs any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse import files
from warehouse.errors import HomeError
from warehouse.home import read_json
from warehouse.identity import is_digest
from warehouse.raw import RawFile, RawStore
from warehouse.sealed import is_sealed


@dataclass(frozen=True)
class Unneeded:
    """Something of the store that nothing needs: where it lies and its size in bytes."""

    path: Path
    size_bytes: int


def damage(raw: RawStore) -> Iterator[str]:
    """One line for each object, record and list of files that is not what it should be."""
    for path, found in raw.damaged():
        yield f"{path}: its bytes have the digest {found}"
    yield from damage_of_lists(raw)


def damage_of_lists(raw: RawStore) -> Iterator[str]:
    """One line for each record and list of files that cannot be read, or names what is gone."""
    for path in _records(raw):
        record = raw.record(f"sha256:{path.stem}")
        if record is None:
            yield f"{path}: the fetch record cannot be read"
        else:
            yield from _gone(record, str(path))
    for source in raw.sources:
        where = raw.root / "sources" / f"{source}.json"
        try:
            collection = raw.last_good(source)
        except (AttributeError, KeyError, TypeError, ValueError):
            collection = None
        if collection is None:
            yield f"{where}: the list of the source's files cannot be read"
            continue
        if not is_sealed(read_json(where)):
            yield f"{where}: it no longer says what was written"
        for file in collection.files:
            yield from _gone(file, str(where))
    for path in sorted((raw.root / "walks").glob("*.json")):
        if not is_sealed(read_json(path)):
            yield f"{path}: it no longer says what was written"


def _gone(file: RawFile, where: str) -> Iterator[str]:
    for path in file.objects:
        if not path.is_file():
            yield f"{where}: {path}, which {file.locator} needs, is gone"


def needed(raw: RawStore, snapshots: Iterable[dict[str, dict[str, Any]]]) -> set[str]:
    """Digests of the files and objects that are needed: by snapshots, by the last good files, and by walks under way.

    Args:
        raw: the store.
        snapshots: `inputs` of the manifest of every published snapshot.

    Raises:
        HomeError: where a list of what is needed cannot be read.
    """
    digests = {file["content_digest"] for inputs in snapshots for one in inputs.values() for file in one["files"]}
    for path in sorted([*(raw.root / "sources").glob("*.json"), *(raw.root / "walks").glob("*.json")]):
        stated = read_json(path)
        if stated is None:
            raise HomeError(f"{path}: cannot be read, so that what it needs is unknown; remove it, or ingest again")
        digests |= _digests(stated)
    for digest in list(digests):
        if record := raw.record(digest):
            digests |= {part.digest for part in record.ranges}
    return digests


def _digests(value: Any) -> set[str]:
    """All digests anywhere in a JSON value."""
    waiting, found = [value], set()
    while waiting:
        match waiting.pop():
            case dict() as entry:
                waiting += [*entry.keys(), *entry.values()]
            case list() as entries:
                waiting += entries
            case str() as text if is_digest(text):
                found.add(text)
    return found


def unneeded(raw: RawStore, needs: set[str]) -> list[Unneeded]:
    """What nothing needs: objects, fetch records, and what is left of downloads."""
    names = {digest.removeprefix("sha256:") for digest in needs}
    paths = [path for path in sorted((raw.root / "objects").glob("??/*")) if path.name not in names]
    paths += [path for path in _records(raw) if path.stem not in names]
    found = [Unneeded(path, path.lstat().st_size) for path in paths]
    downloads = raw.root / "downloads"
    if downloads.exists():
        size = sum(path.lstat().st_size for path in downloads.rglob("*") if path.is_file() and not path.is_symlink())
        found.append(Unneeded(downloads, size))
    return found


def drop(found: Iterable[Unneeded]) -> None:
    """Remove what nothing needs."""
    for one in found:
        if one.path.is_dir():
            files.remove_tree(one.path)
        else:
            one.path.unlink(missing_ok=True)


def _records(raw: RawStore) -> list[Path]:
    return sorted((raw.root / "records").glob("*.json"))
