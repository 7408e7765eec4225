"""A dataset on a replica of the Hub, pulled with the real client."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from assets.kernelbot.hub_files import Span, chunks, joined, leaves
from assets.kernelbot.opening import FOOTER_TAIL
from assets.kernelbot.pull import pull
from assets.kernelbot.read import ROWS, SubmissionsFile
from pipelines.hub import HubClient
from pipelines.hub_session import Patience
from replica.server import Replica
from replica.serving import Request
from tests.kernelbot_folder import case_row, raw_file, score_row, write
from warehouse.raw import Collection, RawFile, RawStore
from warehouse.upkeep import damage

SOURCE = "gpumode-kernelbot"


def hurried(**limits: float) -> Patience:
    """Patience for a server on this machine."""
    return Patience(**{"first_wait": 0.001, "timeout": 20.0, **limits})  # type: ignore[arg-type]


def small_dataset(folder: Path) -> Path:
    """A folder as a replica serves it: a file of each family, in each of which most bytes are of no use."""
    dataset = folder / "kernelbot"
    noise = [f"{number * 7919:x}" * 1000 for number in range(60)]
    cases = [
        case_row(i, 10 * i, code=noise[i], run_meta={"success": True, "stdout": noise[i]}, run_compilation=None)
        for i in range(1, 60)
    ]
    write(dataset, "submissions", cases)
    write(dataset, "trimul_submissions", [score_row(i, code=noise[i]) for i in range(1, 60)])
    boards = [{"id": i, "name": f"board-{i}", "deadline": None, "description": noise[i]} for i in range(1, 40)]
    write(dataset, "leaderboards", boards)
    return dataset


def pulled(replica: Replica, raw: RawStore, *, whole: bool = False, patience: Patience | None = None) -> Collection:
    """The dataset as it is pulled after the last good pull; remembered, as an ingest that completes does."""
    hub = HubClient(replica.hub_endpoint, patience=patience or hurried())
    collection = pull(hub, raw, raw.last_good(SOURCE), whole=whole)
    assert list(damage(raw)) == []
    raw.remember(collection)
    return collection


def contents(requests: Iterable[Request]) -> list[Request]:
    """The requests that were answered with bytes of data files."""
    return [request for request in requests if request.bytes_sent and request.path.startswith("/lfs/")]


def asked_spans(requests: Iterable[Request], file: RawFile) -> list[Span]:
    """The parts of a file that were asked for: first byte and the one behind the last."""
    digest = file.content_digest.removeprefix("sha256:")
    ranges = [request.range for request in contents(requests) if request.path.endswith(digest)]
    bounds = [(text or f"bytes=0-{file.size_bytes - 1}").removeprefix("bytes=").split("-") for text in ranges]
    return [(int(first), int(last) + 1) for first, last in bounds]


def needed_bytes(path: Path) -> tuple[int, int]:
    """Bytes of the chunks of a file that the tables need, and of its footer."""
    reader = SubmissionsFile(raw_file(path))
    found = chunks(reader.metadata, path.stat().st_size)
    places = joined(span for leaf in leaves(found, reader.columns) for span in found[leaf])
    return sum(end - start for start, end in places), reader.metadata.serialized_size + FOOTER_TAIL


def all_read(file: RawFile) -> tuple[str, object]:
    """All that a file says, as text: its rows in order; and its rejects, drift and count."""
    reader = SubmissionsFile(file)
    if reader.family in ("boards", "sources"):
        return repr(reader.table(reader.columns).to_pylist()), reader.rows_read
    rows = pa.Table.from_batches(list(reader.rows()), ROWS)
    return repr(rows.to_pylist()), (reader.rejects, reader.drift, reader.rows_read, reader.family)
