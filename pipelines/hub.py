"""The Hugging Face Hub, asked with its own client."""

from __future__ import annotations

import itertools
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants, get_session, hf_hub_download, hf_hub_url, set_client_factory
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
    XetDownloadError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils._headers import build_hf_headers
from huggingface_hub.utils.tqdm import disable_progress_bars

from assets.kernelbot.opening import what_it_is
from assets.kernelbot.pull import HubFile
from pipelines.hub_session import HubSession, Patience, is_safe, status_text, transport_problem
from warehouse.errors import UnreachableError, UnreadableError
from warehouse.version import code_version

log = logging.getLogger("kernelmart")

_LIBRARY = "kernelmart"
_CLIENT_FAILS = "the Hub's client fails; set HF_HUB_DISABLE_XET=1 to have it do without xet"
_MOST_FILES = 10_000
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class HubClient:
    """One dataset of the Hub.

    The token is that of the environment (`HF_TOKEN`); one that lies in the user's folder is not used.

    Args:
        endpoint: the Hub's address; by default the one of the environment (`HF_ENDPOINT`), else the public Hub.
        dataset: owner and name of the dataset.
        patience: how long to bear with it.

    Raises:
        UnreadableError: from every method, as one line that begins with "the Hub" or says what was sent instead.
    """

    def __init__(
        self, endpoint: str | None, dataset: str = "GPUMODE/kernelbot-data", patience: Patience | None = None
    ) -> None:
        self._endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        try:
            safe = is_safe(httpx2.URL(self._endpoint))
        except httpx2.InvalidURL:
            safe = False
        if not safe:
            raise UnreadableError("HF_ENDPOINT must begin with https:// (http:// is for this machine alone)")
        self._dataset = dataset
        self._patience = patience or Patience()
        self._token: str | bool = os.environ.get("HF_TOKEN", "").strip() or False
        self._api = HfApi(
            endpoint=self._endpoint, token=self._token, library_name=_LIBRARY, library_version=code_version()
        )
        # The client's own messages have addresses in them that are as good as a token.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        # It would ask the Hub for more than it was told to.
        constants.HF_HUB_DISABLE_TELEMETRY = True
        if not sys.stderr.isatty():
            disable_progress_bars()
        set_client_factory(lambda: HubSession(self._endpoint, self._patience))

    def revision(self) -> str:
        """The commit that `main` is at."""
        with self._explained():
            commit = self._api.dataset_info(self._dataset, revision="main").sha
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise UnreadableError("the Hub names no commit for main; check HF_ENDPOINT")
        return commit

    def files(self, revision: str) -> list[HubFile]:
        """The files of a commit, asked for anew at every call."""
        with self._explained():
            listing = self._api.list_repo_tree(self._dataset, recursive=True, revision=revision, repo_type="dataset")
            entries = list(itertools.islice(listing, _MOST_FILES + 1))
            if len(entries) > _MOST_FILES:
                raise UnreadableError(f"the Hub lists more than {_MOST_FILES} files; check HF_ENDPOINT")
            return [_hub_file(entry) for entry in entries if isinstance(entry, RepoFile) and _has_name(entry)]

    def read(self, file: HubFile, revision: str, offset: int, length: int) -> Iterator[bytes]:
        """Some bytes of a file, in pieces; what is cut is gone on with where it was cut."""
        with self._explained():
            url = hf_hub_url(self._dataset, file.path, repo_type="dataset", revision=revision, endpoint=self._endpoint)
        headers = build_hf_headers(token=self._token, library_name=_LIBRARY, library_version=code_version())
        done, vain = 0, 0
        while done < length:
            first, last = offset + done, offset + length - 1
            before, why = done, "breaks off its answer"
            try:
                with (
                    self._explained(),
                    get_session().stream("GET", url, headers={**headers, "Range": f"bytes={first}-{last}"}) as answer,
                ):
                    _require_part(answer, file, first, last)
                    for piece in answer.iter_raw():
                        done += len(piece)
                        if done > length:
                            raise UnreadableError("the Hub sends more bytes than it was asked for; ingest again later")
                        yield piece
            except httpx2.TransportError as error:
                why = transport_problem(error)
            if done < length:
                # Few bytes are no progress: a file that comes in drips is given up.
                vain = 1 if done - before >= self._patience.window_bytes else vain + 1
                self._patience.wait(vain, why)

    def download(self, file: HubFile, revision: str, folder: Path) -> Path:
        """A file, whole, by the Hub's own client and its cache in a folder; its digest is the caller's to check."""
        try:
            with self._explained():
                return Path(
                    hf_hub_download(
                        self._dataset,
                        file.path,
                        repo_type="dataset",
                        revision=revision,
                        cache_dir=folder,
                        endpoint=self._endpoint,
                        token=self._token,
                        library_name=_LIBRARY,
                        library_version=code_version(),
                    )
                )
        except httpx2.TransportError as error:
            raise UnreachableError(f"the Hub {transport_problem(error)}; ingest again later") from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Tell of what the Hub's client raises in one line of our own: its texts have addresses in them."""
        try:
            yield
        except (UnreadableError, httpx2.TransportError):
            raise
        except OfflineModeIsEnabled:
            raise UnreadableError("the Hub is not asked, since HF_HUB_OFFLINE is set; unset it") from None
        except GatedRepoError:
            raise UnreadableError(f"the Hub lets nobody see {self._dataset} unasked; set HF_TOKEN") from None
        except (RepositoryNotFoundError, RevisionNotFoundError):
            raise UnreadableError(
                f"the Hub has no dataset {self._dataset} to show; check HF_ENDPOINT and HF_TOKEN"
            ) from None
        except HfHubHTTPError as error:
            raise UnreadableError(
                f"the Hub answers {status_text(error.response.status_code)}; ingest again later"
            ) from None
        except (LocalEntryNotFoundError, FileMetadataError):
            raise UnreadableError("the Hub's answer lacks what its client needs; check HF_ENDPOINT") from None
        except OSError as error:
            if error.errno is not None:
                raise
            if type(error) is OSError:
                raise UnreadableError(
                    "the Hub sends a file of another length than it says; ingest again later"
                ) from None
            raise UnreadableError(_CLIENT_FAILS) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UnreadableError("the Hub's answer is not of the form that its API has; check HF_ENDPOINT") from None
        except (RuntimeError, XetDownloadError):
            raise UnreadableError(
                "the Hub's client fails; set HF_HUB_DISABLE_XET=1 to have it do without xet"
            ) from None


def _has_name(entry: RepoFile) -> bool:
    """Whether a file's name can be written down: half a surrogate pair has no bytes."""
    try:
        entry.path.encode()
    except UnicodeEncodeError:
        log.warning("kernelbot: a file of the list has a name that is no text, and is left out")
        return False
    return True


def _hub_file(entry: RepoFile) -> HubFile:
    """A file of the listing, whose every field may be anything."""
    lfs = entry.lfs
    size, sha256 = (lfs.size, lfs.sha256) if lfs else (entry.size, None)
    if (
        not isinstance(entry.path, str)
        or type(size) is not int
        or size < 0
        or not isinstance(entry.blob_id, str)
        or not _COMMIT.fullmatch(entry.blob_id)
        or (lfs and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)))
    ):
        raise ValueError("a file of the listing has no name, size or digest")
    return HubFile(entry.path, size, f"sha256:{sha256}" if sha256 else None, entry.blob_id)


def _require_part(answer: httpx2.Response, file: HubFile, first: int, last: int) -> None:
    """See that an answer is the part of the file that was asked for.

    Raises:
        UnreadableError: where it is something else.
    """
    if answer.status_code == 206:
        stated = answer.headers.get("content-range", "")
        if stated != f"bytes {first}-{last}/{file.size_bytes}":
            raise UnreadableError(
                "the Hub sends other bytes than it was asked for: its file has another length than listed"
            )
        etag = answer.headers.get("etag", "").removeprefix("W/").strip('"')
        if file.content_digest and _SHA256.fullmatch(etag) and f"sha256:{etag}" != file.content_digest:
            raise UnreadableError("the Hub sends another file than it lists; ingest again later")
        return
    if answer.status_code == 416:
        raise UnreadableError("the Hub's file is shorter than listed; ingest again later")
    if answer.status_code != 200:
        raise UnreadableError(f"the Hub answers {status_text(answer.status_code)}; ingest again later")
    length = answer.headers.get("content-length")
    if (first, last + 1) == (0, file.size_bytes) and length in (None, str(file.size_bytes)):
        return
    head = next(answer.iter_raw(256), b"")
    raise UnreadableError(what_it_is(head, len(head)) or "the Hub does not send parts of files; check the proxy")
