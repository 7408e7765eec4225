"""The pull of SOL-ExecBench: the listing, and each night the kernels that changed and a seventh of all others."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from assets.sol_execbench.asking import AnswerError, Api, ServiceError
from assets.sol_execbench.read import Answer, Rejected, UnreadableAnswer, about, read
from assets.sol_execbench.submissions import integer_id
from assets.sol_execbench.terms import SOURCE
from assets.sol_execbench.walk import KernelError, KernelWalk, ask
from assets.sol_execbench.walks import ListedKernel, Walks, oldest_walk
from warehouse.errors import UnreachableError, UnreadableError
from warehouse.raw import Collection, RawFile, RawStore

__all__ = ["LISTING", "oldest_walk", "pull"]

log = logging.getLogger("kernelmart")

LISTING = "kernels.json"
_LARGEST_ID = 10**18 - 1
_LINES = 5
_MOST_KERNELS = 5_000
_TOLD_EVERY = 25


def pull(
    api: Api, raw: RawStore, last_good: Collection | None, now: datetime, *, again: frozenset[int] | None = None
) -> Collection:
    """Ask for what changed, and give all answers there are now.

    Args:
        api: the client.
        raw: where answers are kept, and how far the walk has come: after each kernel, so that a run that dies is gone
            on with.
        last_good: the files of the last completed ingest, used for kernels that cannot be asked for.
        now: in UTC.
        again: the kernels to walk, once more if they are known, and no others; None for all that are due.

    Returns:
        The answers, with a line for what is older than it should be, and what cannot be had at all.

    Raises:
        UnreadableError: without a listing and without last good files.
        HomeError: where an answer cannot be kept.
    """
    try:
        data, listed = _listing(api)
    except (AnswerError, ServiceError) as error:
        if last_good is None:
            kind = UnreachableError if isinstance(error, UnreachableError) else UnreadableError
            raise kind(f"{SOURCE}: there is no listing of kernels: {error}") from error
        return replace(last_good, stale=(f"{SOURCE}: there is no listing of kernels: {error}",), unreadable=())
    listing = raw.keep_bytes(data, LISTING, now)
    walks = Walks.of(raw)
    begun_at = walks.begin(now) if again is None else walks.begun_at
    walks.kernels = {number: walked for number, walked in walks.kernels.items() if number in listed}
    walks.failed &= listed.keys()
    walk = _Walk(api, raw, walks, _by_kernel(last_good), now)
    if again is None:
        walk.over(walks.due(listed.values(), now))
    else:
        walk.over([listed[number] for number in sorted(again & listed.keys())])
        # A walk over all of them that is unfinished stays so.
        walks.begun_at = begun_at
        walks.write(raw)
    return walk.collection(listing, listed, first=last_good is None)


class _Walk:
    """A walk over the kernels that are due."""

    def __init__(
        self, api: Api, raw: RawStore, walks: Walks, last_good: Mapping[int, tuple[RawFile, ...]], now: datetime
    ) -> None:
        self._api = api
        self._raw = raw
        self._walks = walks
        self._last_good = last_good
        self._now = now
        self._failed: dict[int, KernelError] = {}
        self._stopped = ""
        self._left: list[ListedKernel] = []

    def over(self, due: list[ListedKernel]) -> None:
        """Walk them, until there are none or the service cannot be asked any more."""
        for done, kernel in enumerate(due):
            try:
                self._one(kernel)
            except ServiceError as error:
                self._left = due[done:]
                self._stopped = (
                    f"{error} (stopped at kernel {kernel.id}, {len(self._left)} of {len(due)} left; "
                    "the next ingest goes on there)"
                )
                break
            except KernelError as error:
                self._failed[kernel.id] = error
                self._walks.failed.add(kernel.id)
                self._walks.write(self._raw)
            if (done + 1) % _TOLD_EVERY == 0:
                log.info("%s: walked %d of %d kernels", SOURCE, done + 1, len(due))
        if not self._stopped:
            self._walks.begun_at = None
        self._walks.write(self._raw)

    def _one(self, kernel: ListedKernel) -> None:
        answers = self._answers(kernel)
        kept = tuple(self._raw.keep_bytes(data, locator, self._now) for locator, data in answers.items())
        self._walks.done(kernel, self._now, kept)
        self._walks.write(self._raw)

    def _answers(self, kernel: ListedKernel) -> dict[str, bytes]:
        """What the service says of a kernel.

        Raises:
            KernelError: also where it no longer has what was there before, though the listing does.
            ServiceError: where no further request should be made.
        """
        for _ in range(2):
            walk = KernelWalk(self._api, kernel.id, kernel.gpu_types, self._walks.values)
            answers = walk.walk()
            if not answers and self._files(kernel.id):
                raise KernelError(f"kernels/{kernel.id}.json", "the kernel is listed, but not there (404)")
            if walk.obtained or not kernel.submission_count or not self._had_submissions(kernel.id):
                return answers
        what = f"there are no submissions, though {kernel.submission_count} are listed"
        raise KernelError(f"submissions/{kernel.id}.json", what)

    def _had_submissions(self, number: int) -> bool:
        try:
            return any(
                read(Answer.of(file.locator, file.path.read_bytes())).rows
                for file in self._files(number)
                if file.locator.startswith("submissions/")
            )
        except (OSError, UnreadableAnswer):
            return False

    def _files(self, number: int) -> tuple[RawFile, ...]:
        """A kernel's answers: of its last walk, else those that were good the last time."""
        walked = self._walks.kernels.get(number)
        return walked.files if walked else self._last_good.get(number, ())

    def collection(self, listing: RawFile, listed: Mapping[int, ListedKernel], *, first: bool) -> Collection:
        """The answers of all listed kernels; in a `first` pull of the source none may be missing."""
        used = [listing]
        stale: list[str] = []
        unreadable: list[tuple[str, str]] = []
        for number in sorted(listed):
            files = self._files(number)
            used += files
            if error := self._failed.get(number):
                if files:
                    stale.append(f"{error}; the answers of {max(file.fetched_at for file in files):%Y-%m-%d} are used")
                else:
                    unreadable.append((error.locator, error.detail))
        if len(stale) > _LINES:
            stale[_LINES:] = [f"{SOURCE}: {len(stale) - _LINES} more kernels keep their last good answers"]
        if self._stopped:
            missing = [kernel.id for kernel in self._left if kernel.id not in self._walks.kernels]
            if first and missing:
                unreadable.insert(0, (f"kernels/{missing[0]}.json", self._stopped))
            stale.append(f"{SOURCE}: {self._stopped}")
        return Collection(SOURCE, tuple(used), tuple(stale), tuple(unreadable))


def _listing(api: Api) -> tuple[bytes, dict[int, ListedKernel]]:
    """The listing, and its kernels by id.

    Raises:
        AnswerError: also where it names no kernel: that is no answer of a service whose kernels are there.
        ServiceError: where no further request should be made.
    """
    data, found = ask(api, LISTING, ["kernels"], {})
    listed: dict[int, ListedKernel] = {}
    for _, row in found.rows if found else ():
        kernel = _listed(row)
        if kernel is not None:
            listed.setdefault(kernel.id, kernel)
    if len(listed) > _MOST_KERNELS:
        raise AnswerError(f"{LISTING} names more than {_MOST_KERNELS} kernels; look at the service")
    if not listed:
        raise AnswerError(f"{LISTING} names no kernel; look at the service")
    return data, listed


def _listed(row: Any) -> ListedKernel | None:
    """A kernel that can be asked for; what is odd in its entry, or stands there besides, is the reader's to tell."""
    try:
        number = integer_id(row["id"], "id", lambda *_: None)
    except (Rejected, KeyError, TypeError):
        return None
    count, gpus = row.get("submission_count"), row.get("gpu_types")
    count = count if isinstance(count, int | str) else None
    names = tuple(gpu for gpu in gpus if isinstance(gpu, str)) if isinstance(gpus, list) else ()
    return ListedKernel(number, count, names) if 0 <= number <= _LARGEST_ID else None


def _by_kernel(collection: Collection | None) -> dict[int, tuple[RawFile, ...]]:
    """Files of a collection by the kernel that they are about."""
    found: dict[int, list[RawFile]] = defaultdict(list)
    for file in collection.files if collection else ():
        number = about(file.locator)
        if number is not None:
            found[number].append(file)
    return {number: tuple(files) for number, files in found.items()}
