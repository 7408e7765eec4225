"""Stores elsewhere, named by fsspec URLs. Whatever fails is one line, and no line holds what a URL keeps secret."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.client import NOT_FOUND
from pathlib import Path
from typing import Any

from warehouse import files
from warehouse.errors import StoreError

# Both what is sent and what is read back go in pieces of this size.
PIECE_BYTES = 8 << 20
_URL = re.compile(r"(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>[^\s'\"<>]*)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")
_HIDDEN = "***"
_LOCAL = ("file", "local")


def is_url(text: str) -> bool:
    """Whether a home's name is the URL of a store and not a folder."""
    return _SCHEME.match(text) is not None


def redacted(text: str) -> str:
    """A text, its URLs without user, password, query and fragment."""
    return _URL.sub(lambda match: f"{match['protocol']}://{_without_secrets(match['rest'])}", text)


def _without_secrets(rest: str) -> str:
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    user, _, after = place.rpartition("@")
    # An at sign may be part of a name, unless it ends what a host begins with, or follows a password that has a slash.
    if "@" in place.partition("/")[0] or ":" in user:
        place = f"{_HIDDEN}@{after}"
    return place if len(re.split(r"[?#]", rest, maxsplit=1)) == 1 else f"{place}?{_HIDDEN}"


@dataclass(frozen=True, repr=False)
class Store:
    """Files by name below a URL.

    A file appears whole or not at all in a local folder and wherever the store's own put does so, as those of object
    stores do. Every method raises StoreError where the store cannot be used.
    """

    url: str

    def __post_init__(self) -> None:
        protocol, _, place = self.url.rpartition("://")
        # Else whatever folder a command is run in would be part of it.
        if not place.strip("/") or (protocol in _LOCAL and not place.startswith("/")):
            raise StoreError(f"{redacted(self.url)}: it names no folder; a folder of this machine begins with file:///")

    def __str__(self) -> str:
        return redacted(self.url).rstrip("/")

    def __repr__(self) -> str:
        return f"Store({str(self)!r})"

    def address(self, name: str) -> str:
        """URL of a file, without secrets."""
        place, mark, hidden = str(self).partition("?")
        return f"{place.rstrip('/')}/{name}{mark}{hidden}"

    def is_within(self, folder: Path) -> bool:
        """Whether it is a folder of this machine, and is or lies in another."""
        protocol, _, place = self.url.rpartition("://")
        return protocol in _LOCAL and Path(place).resolve().is_relative_to(folder.resolve())

    def sizes(self, folder: str) -> dict[str, int]:
        """Size in bytes of each file below a folder, by its name inside that folder."""
        with self._using(folder):
            self._system.invalidate_cache()
            try:
                found = self._system.find(self._path(folder), detail=True)
            except FileNotFoundError:
                return {}
            root = self._system._strip_protocol(self._path(folder)).rstrip("/") + "/"
            return {path.removeprefix(root): int(about["size"]) for path, about in found.items()}

    def read(self, name: str, limit: int) -> bytes | None:
        """A small file's bytes; None where there is no such file.

        Raises:
            StoreError: where it is larger than `limit` bytes.
        """
        with self._using(name):
            self._system.invalidate_cache()
            try:
                with self._opened(name) as file:
                    content: bytes = file.read(limit + 1)
            except FileNotFoundError as error:
                cause = error.__cause__
                # Of the web, this is said of whatever goes wrong.
                if "https" in self._system.protocol and cause and getattr(cause, "status", None) != NOT_FOUND:
                    raise cause from None
                return None
        if len(content) > limit:
            raise StoreError(f"{self.address(name)}: it is larger than such a file ever is; publish a snapshot anew")
        return content

    def pieces(self, name: str) -> Iterator[bytes]:
        """A file's bytes, piece by piece."""
        with self._using(name), self._opened(name) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def sha256(self, name: str) -> str:
        """SHA-256 of a file's bytes as they are read back, as 64 hex digits."""
        digest = hashlib.sha256()
        for piece in self.pieces(name):
            digest.update(piece)
        return digest.hexdigest()

    def put(self, source: Path, name: str) -> None:
        """Put a local file there, in place of one of that name."""
        with self._using(name):
            if local := self._local(name):
                with files.writing(local) as aside:
                    shutil.copyfile(source, aside)
            else:
                # By default, S3's would hold files of 100 MB in memory, several at once.
                pieces = {"chunksize": PIECE_BYTES} if "s3" in self._system.protocol else {}
                self._system.put_file(str(source), self._path(name), **pieces)

    def put_bytes(self, name: str, content: bytes) -> None:
        """Put a small file there, in place of one of that name."""
        with self._using(name):
            if local := self._local(name):
                files.write_bytes(local, content)
            else:
                self._system.pipe_file(self._path(name), content)

    def copy(self, name: str, to: str) -> None:
        """Have the store copy one of its files."""
        with self._using(to):
            if local := self._local(to):
                with files.writing(local) as aside:
                    shutil.copyfile(Path(self._path(name)), aside)
            else:
                self._system.cp_file(self._path(name), self._path(to))

    def _path(self, name: str) -> str:
        system, root = self._found
        # A query belongs behind the name: where there is one in an address of the web, it says who asks.
        query = ""
        if "https" in system.protocol:
            root, mark, query = root.partition("?")
            query = mark + query
        return f"{root.rstrip('/')}/{name}{query}"

    def _local(self, name: str) -> Path | None:
        from fsspec.implementations.local import LocalFileSystem

        return Path(self._path(name)) if isinstance(self._system, LocalFileSystem) else None

    def _opened(self, name: str) -> Any:
        # What a read-ahead would fetch beside is of no use: everything is read once, from its beginning.
        return self._system.open(self._path(name), "rb", block_size=PIECE_BYTES, cache_type="none")

    @cached_property
    def _found(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        system, root = url_to_fs(self.url)
        return system, root

    @property
    def _system(self) -> Any:
        return self._found[0]

    @contextmanager
    def _using(self, name: str) -> Iterator[None]:
        try:
            yield
        # Each file system has errors of its own, and their words may hold what the URL keeps secret.
        except Exception as error:
            if isinstance(error, OSError) and error.errno in files.NO_ROOM:
                raise StoreError(f"{self.address(name)}: {os.strerror(error.errno)}; make room there") from None
            said = self._scrubbed(" ".join(str(error).split()))[:300] or type(error).__name__
            raise StoreError(
                f"{self.address(name)}: the store cannot be used ({said}); check its address, the network and the "
                "credentials, and try again"
            ) from None

    def _scrubbed(self, text: str) -> str:
        """A text without the URL's secrets, wherever they stand."""
        text = redacted(text.replace(self.url, str(self)))
        for secret in sorted(_secrets(self.url), key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def _secrets(url: str) -> set[str]:
    found: set[str] = set()
    for match in _URL.finditer(url):
        place, _, hidden = match["rest"].partition("?")
        user = place.rpartition("@")[0]
        # A password with a slash is taken apart by whoever reads the URL as one.
        found |= {user, *re.split(r"[:/]", user)[1:], hidden, *re.split(r"[&#=]", hidden)}
    # What is this short stands in every text, and keeps nothing secret.
    return {secret for secret in found if len(secret) > 2}
