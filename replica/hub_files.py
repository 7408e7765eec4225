"""The files of the replica's dataset: their digests, the revisions that they make, and the contents of all of them."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

# Left out of the dataset card, so that a reader must look at the list of files as well.
NOT_ON_CARD = "helion_b200_nebius_submissions.parquet"
_ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class RepositoryFile:
    """A file of a revision: hex digests of its content, its size in bytes, and whether Git LFS holds it."""

    path: str
    sha256: str
    blob_id: str
    size: int
    is_lfs: bool


@dataclass(frozen=True)
class Revision:
    """A commit: 40 hex digits that follow from the files' names and contents."""

    commit: str
    files: Mapping[str, RepositoryFile]
    modified: datetime


class HubFiles:
    """All revisions of a folder that were ever looked at.

    The folder is read anew at each look at `main`. Every content is copied when it is first seen, so that earlier
    revisions stay whole whatever becomes of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = tempfile.TemporaryDirectory(prefix="replica-")
        self._objects = Path(self._copies.name)
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[tuple[int, ...], RepositoryFile]] = {}
        self._revisions: dict[str, Revision] = {}

    def close(self) -> None:
        """Removes the copies."""
        self._copies.cleanup()

    def revision(self, name: str) -> Revision | None:
        """The revision of that commit, or what the folder has now for `main`; None where there is none."""
        with self._lock:
            return self._look() if name == "main" else self._revisions.get(name)

    def content(self, sha256: str) -> Path | None:
        """Where the content with that digest lies; None where no revision had it."""
        path = self._objects / sha256
        return path if re.fullmatch("[0-9a-f]{64}", sha256) and path.is_file() else None

    def _look(self) -> Revision:
        found = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        files = [self._file(name, path) for name, path in found.items()]
        if "README.md" not in found:
            files.append(self._keep("README.md", dataset_card(sorted(found))))
        if ".gitattributes" not in found:
            files.append(self._keep(".gitattributes", _ATTRIBUTES))
        files.sort(key=lambda file: file.path)
        listing = "".join(f"{file.sha256} {file.path}\n" for file in files)
        commit = hashlib.sha1(listing.encode(), usedforsecurity=False).hexdigest()
        if commit not in self._revisions:
            self._revisions[commit] = Revision(commit, {file.path: file for file in files}, datetime.now(UTC))
        return self._revisions[commit]

    def _file(self, name: str, path: Path) -> RepositoryFile:
        stat = path.stat()
        state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        if name not in self._seen or self._seen[name][0] != state:
            self._seen[name] = (state, self._keep(name, path))
        return self._seen[name][1]

    def _keep(self, name: str, content: bytes | Path) -> RepositoryFile:
        """Copies a content to where its digest says."""
        copy = self._objects / "incoming"
        if isinstance(content, Path):
            shutil.copyfile(content, copy)
        else:
            copy.write_bytes(content)
        size = copy.stat().st_size
        with copy.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        is_lfs = name.endswith(".parquet")
        blob_id = git_blob_id(lfs_pointer(sha256, size) if is_lfs else copy.read_bytes())
        copy.replace(self._objects / sha256)
        return RepositoryFile(name, sha256, blob_id, size, is_lfs)


def git_blob_id(data: bytes) -> str:
    """The SHA-1, in hex, by which Git names this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def lfs_pointer(sha256: str, size: int) -> bytes:
    """What Git itself holds in place of a file that Git LFS holds."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def dataset_card(names: list[str]) -> bytes:
    """A README whose YAML header maps config names to files, in each of the forms that a card may use.

    Args:
        names: paths of all files of the repository.
    """
    configs = []
    for number, name in enumerate(name for name in names if name.endswith(".parquet") and name != NOT_ON_CARD):
        forms = (name, [name], [{"split": "train", "path": name}], [{"split": "train", "path": [name]}])
        configs.append({"config_name": name.removesuffix(".parquet"), "data_files": forms[number % len(forms)]})
    header = yaml.safe_dump({"license": "mit", "configs": configs}, sort_keys=False)
    return f"---\n{header}---\n\n# Kernel submissions\n\nA made-up copy.\n".encode()
