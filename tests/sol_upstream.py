"""Small SOL-ExecBench services: folders of saved answers as the replica serves them, and clients in a hurry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assets.sol_execbench.pull import pull
from pipelines.sol_api import Limits, SolApi
from replica.server import Replica
from replica.sol_service import PREFIX
from tests.sol_answers import definition, listed, submission
from warehouse.raw import Collection, RawStore

# Nobody who asks for a wait is waited for; everything else is as in earnest.
HURRY = Limits(longest_wait_seconds=2.0)


NIGHT = datetime(2026, 11, 30, 3, tzinfo=UTC)


def hurried(replica: Replica, **changes: Any) -> SolApi:
    """A client of the replica that never waits for long."""
    return SolApi(replica.sol_url, 0.0, replace(HURRY, **changes))


def write_upstream(folder: Path, kernels: Mapping[int, Iterable[dict[str, Any]]]) -> Path:
    """Write what the service knows below `<folder>/sol_execbench`; the submissions of each kernel, newest first."""
    rows = {number: list(of_kernel) for number, of_kernel in kernels.items()}
    put(folder, "kernels.json", {"kernels": [listed(n, submission_count=len(rows[n])) for n in rows]})
    for number, of_kernel in rows.items():
        put(folder, f"kernels/{number}.json", definition(number, title=f"Copy {number}"))
        put_submissions(folder, number, of_kernel)
    return folder


def put(folder: Path, locator: str, data: Any) -> None:
    """Write one answer."""
    path = folder / "sol_execbench" / locator
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"data": data}), encoding="utf-8")


def put_submissions(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """Write the submissions of a kernel as the pages that they fill."""
    for page in range(max(1, -(-len(rows) // 50))):
        shown = rows[50 * page : 50 * page + 50]
        data = {"submissions": shown, "total": len(rows), "offset": 50 * page, "limit": 50}
        put(folder, f"submissions/{number}.json" if not page else f"submissions/{number}.{page + 1}.json", data)


def submissions(number: int, count: int, **changes: Any) -> list[dict[str, Any]]:
    """So many submissions of a kernel, newest first; ids begin at 1001 for kernel 1, and so on."""
    rows = [submission(1000 * number + index, number) for index in range(count, 0, -1)]
    return [{**row, **changes} for row in rows]


def asked(replica: Replica, what: str = "") -> list[str]:
    """Paths below the API's own that were asked for, with those of their fields that narrow a list, in order."""
    found = []
    for request in replica.requests:
        fields = {name: value for name, value in request.query.items() if name != "limit"}
        words = [request.path.removeprefix(PREFIX + "/"), *(f"{name}={value}" for name, value in fields.items())]
        if request.path.startswith(f"{PREFIX}/{what}"):
            found.append(" ".join(words))
    return found


def walked(replica: Replica) -> list[int]:
    """Kernels whose definition was asked for, in order."""
    return [int(path.removeprefix("kernels/")) for path in asked(replica, "kernels/")]


class Upstream:
    """A replica of a folder, and a raw store that is filled from it."""

    def __init__(self, folder: Path, replica: Replica) -> None:
        self.folder = folder / "upstream"
        self.replica = replica
        self.raw = RawStore(folder / "raw")
        self.last_good: Collection | None = None

    def pull(self, now: datetime = NIGHT, **limits: Any) -> Collection:
        """Pull, as if the ingest completed; the list of requests begins anew before."""
        self.replica.forget_requests()
        collection = pull(hurried(self.replica, **limits), self.raw, self.last_good, now)
        if not collection.unreadable:
            self.last_good = collection
        return collection

    def clean(self, now: datetime = NIGHT) -> Collection:
        """Pull, where nothing may go wrong."""
        collection = self.pull(now)
        assert (collection.stale, collection.unreadable) == ((), ())
        return collection
