"""The Hub's side of the replica: one dataset, as the Hub's own client asks for it, with its large files in Git LFS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode

import yaml

from replica.answers import Answer, FilePart, json_answer
from replica.hub_files import HubFiles, RepositoryFile, Revision, lfs_pointer

DATASET = "GPUMODE/kernelbot-data"
_API = f"/api/datasets/{DATASET}"
_RESOLVE = f"/datasets/{DATASET}/resolve/"
_LFS = "/lfs/"

Query = Mapping[str, list[str]]


class HubService:
    """Answers for the dataset in a folder.

    Args:
        folder: the files of the dataset.
        endpoint: where the service is, as a client sees it.
        store: where the contents that Git LFS holds are.
        token: what every request but those for LFS contents must bear; None lets everybody in.
        page_size: entries on a page of the file list.
    """

    def __init__(self, folder: Path, endpoint: str, store: str, token: str | None, page_size: int) -> None:
        self.files = HubFiles(folder)
        self._endpoint = endpoint
        self._store = store
        self._token = token
        self._page_size = page_size

    def answer(self, path: str, query: Query, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to one request.

        Args:
            path: still percent-encoded.
            query: every value of each field.
            headers: with names in lower case.
            body: of a POST.
        """
        if path.startswith(_LFS):
            return self._lfs(path.removeprefix(_LFS), query)
        if refusal := self._refusal(headers.get("authorization")):
            return refusal
        if path.startswith(_RESOLVE):
            revision, _, name = path.removeprefix(_RESOLVE).partition("/")
            return self._resolve(unquote(revision), unquote(name))
        if path == _API or path.startswith(_API + "/"):
            _, kind, name, *rest = [*path.removeprefix(_API).split("/"), "", ""]
            return self._api(kind, unquote(name), unquote("/".join(rest).strip("/")), query, body)
        return _error(404, "RepoNotFound", "Repository not found")

    def _refusal(self, authorization: str | None) -> Answer | None:
        if self._token is None or authorization == f"Bearer {self._token}":
            return None
        if authorization is None:
            return _error(401, "RepoNotFound", "Repository not found")
        message = "Invalid credentials in Authorization header"
        return json_answer({"error": message}, 401, X_Error_Message=message)

    def _api(self, kind: str, name: str, rest: str, query: Query, body: bytes) -> Answer:
        revision = self.files.revision(name or "main")
        if revision is None:
            return _error(404, "RevisionNotFound", f"Invalid rev id: {name}")
        if kind in ("", "revision"):
            return json_answer(_information(revision, self._card(revision), with_blobs="blobs" in query))
        if kind == "tree":
            return self._tree(revision, rest, query)
        if kind == "paths-info":
            wanted = _paths(body)
            entries = {entry["path"]: entry for entry in _entries(revision, "", recursive=True, expand=False)}
            return json_answer([entries[path] for path in wanted if path in entries])
        return _error(404, "", "Not found")

    def _tree(self, revision: Revision, folder: str, query: Query) -> Answer:
        flags = {name: query.get(name, ["false"])[-1].lower() in ("true", "1") for name in ("recursive", "expand")}
        entries = _entries(revision, folder, **flags)
        if folder and not entries:
            return _error(404, "EntryNotFound", f"{folder} does not exist")
        start = int(query.get("cursor", ["0"])[-1])
        answer = json_answer(entries[start : start + self._page_size])
        if start + self._page_size >= len(entries):
            return answer
        following = urlencode({**{k: str(v).lower() for k, v in flags.items()}, "cursor": start + self._page_size})
        inside = "/" + quote(folder, safe="") if folder else ""
        return answer.with_headers(
            Link=f'<{self._endpoint}{_API}/tree/{revision.commit}{inside}?{following}>; rel="next"'
        )

    def _resolve(self, name: str, path: str) -> Answer:
        revision = self.files.revision(name)
        if revision is None:
            return _error(404, "RevisionNotFound", f"Invalid rev id: {name}")
        file = revision.files.get(path)
        if file is None:
            return _error(404, "EntryNotFound", "Entry not found").with_headers(X_Repo_Commit=revision.commit)
        if not file.is_lfs:
            headers = {"ETag": f'"{file.blob_id}"', "X-Repo-Commit": revision.commit, "Accept-Ranges": "bytes"}
            return Answer(200, {"Content-Type": "text/plain; charset=utf-8", **headers}, self._part(file))
        location = f"{self._store}{_LFS}{file.sha256}?commit={revision.commit}"
        return Answer(302, {"Location": location, **_linked(file.sha256, file.size, revision.commit)})

    def _lfs(self, sha256: str, query: Query) -> Answer:
        path = self.files.content(sha256)
        if path is None:
            return _error(404, "EntryNotFound", "No such object")
        size = path.stat().st_size
        # The Hub's client follows a redirect on one host before it looks for these, so the object bears them as well.
        linked = _linked(sha256, size, query.get("commit", [""])[-1])
        headers = {"Content-Type": "application/octet-stream", "ETag": f'"{sha256}"', "Accept-Ranges": "bytes"}
        return Answer(200, {**headers, **linked}, FilePart(path, 0, size))

    def _part(self, file: RepositoryFile) -> FilePart:
        path = self.files.content(file.sha256)
        assert path is not None  # noqa: S101 - the file is of a revision
        return FilePart(path, 0, file.size)

    def _card(self, revision: Revision) -> Any:
        """The header of the dataset card, as JSON has it."""
        part = self._part(revision.files["README.md"])
        _, _, text = part.path.read_text(encoding="utf-8", errors="replace").partition("---\n")
        try:
            return json.loads(json.dumps(yaml.safe_load(text.partition("\n---")[0]), default=str))
        except yaml.YAMLError:
            return None


def _linked(sha256: str, size: int, commit: str) -> dict[str, str]:
    return {"X-Repo-Commit": commit, "X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(size)}


def _error(status: int, code: str, message: str) -> Answer:
    return json_answer({"error": message}, status, X_Error_Code=code, X_Error_Message=message)


def _information(revision: Revision, card: Any, *, with_blobs: bool) -> dict[str, Any]:
    siblings: list[dict[str, Any]] = []
    for file in revision.files.values():
        sibling: dict[str, Any] = {"rfilename": file.path}
        if with_blobs:
            sibling |= {"size": file.size, "blobId": file.blob_id}
            if file.is_lfs:
                sibling["lfs"] = {"sha256": file.sha256, "size": file.size, "pointerSize": _pointer_size(file)}
        siblings.append(sibling)
    return {
        "_id": revision.commit[:24],
        "id": DATASET,
        "author": DATASET.partition("/")[0],
        "sha": revision.commit,
        "lastModified": _time(revision),
        "private": False,
        "gated": False,
        "disabled": False,
        "tags": ["license:mit"],
        "cardData": card,
        "siblings": siblings,
    }


def _entries(revision: Revision, folder: str, *, recursive: bool, expand: bool) -> list[dict[str, Any]]:
    """Files and folders below a folder, in order of paths; only those right in it unless `recursive`."""
    prefix = folder + "/" if folder else ""
    commit = {"id": revision.commit, "title": "Upload", "date": _time(revision)}
    more = {"lastCommit": commit} if expand else {}
    entries: dict[str, dict[str, Any]] = {}
    for file in revision.files.values():
        if not file.path.startswith(prefix):
            continue
        parts = file.path.removeprefix(prefix).split("/")
        for depth in range(1, len(parts) if recursive else min(2, len(parts))):
            inner = prefix + "/".join(parts[:depth])
            entries[inner] = {"type": "directory", "oid": revision.commit, "size": 0, "path": inner, **more}
        if recursive or len(parts) == 1:
            entries[file.path] = {"type": "file", "oid": file.blob_id, "size": file.size, "path": file.path, **more}
            if file.is_lfs:
                lfs = {"oid": file.sha256, "size": file.size, "pointerSize": _pointer_size(file)}
                entries[file.path]["lfs"] = lfs
    return sorted(entries.values(), key=lambda entry: str(entry["path"]))


def _pointer_size(file: RepositoryFile) -> int:
    return len(lfs_pointer(file.sha256, file.size))


def _time(revision: Revision) -> str:
    return revision.modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _paths(body: bytes) -> list[str]:
    """The paths that a POST asks for, as a form or as JSON."""
    if body.lstrip().startswith(b"{"):
        wanted = json.loads(body).get("paths", [])
        return [wanted] if isinstance(wanted, str) else list(wanted)
    return parse_qs(body.decode()).get("paths", [])
