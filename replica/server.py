"""Both upstream services over real HTTP on loopback, from a folder as `replica.corpus` writes it.

python -m replica.server FOLDER [--port 0]
"""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs

from replica.answers import Answer, json_answer
from replica.faults import Faults
from replica.hub_service import HubService
from replica.serving import Asked, Request, Server
from replica.sol_service import PREFIX, SolService

__all__ = ["Replica", "Request"]


class Replica:
    """A context in which a folder is served; it is read live, so that a change of a file is a change upstream.

    Args:
        folder: with `kernelbot/` and `sol_execbench/` in it.
        port: to listen on; 0 takes a free one.
        token: what requests to the Hub must bear; None lets everybody in.
        page_size: entries on a page of the Hub's list of files.
        store_apart: whether large files come from a port of their own, as the Hub has them on another host.

    `faults` says what goes wrong; without any, all is well.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        token: str | None = None,
        page_size: int = 1000,
        store_apart: bool = False,
    ) -> None:
        self.faults = Faults()
        self._server = Server(self._answer, port, *([0] if store_apart else []))
        endpoint, store = self._server.urls[0], self._server.urls[-1]
        self._hub = HubService(Path(folder) / "kernelbot", endpoint, store, token, page_size)
        self._sol = SolService(Path(folder) / "sol_execbench")

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._hub.files.close()
        if self._server.errors and error is None:
            raise self._server.errors[0]

    @property
    def hub_endpoint(self) -> str:
        """What the Hub's client needs as its endpoint."""
        return self._server.urls[0]

    @property
    def sol_url(self) -> str:
        """The address of the SOL-ExecBench API."""
        return self._server.urls[0] + PREFIX

    @property
    def revision(self) -> str:
        """The commit that `main` of the dataset is at."""
        revision = self._hub.files.revision("main")
        return revision.commit if revision else ""

    @property
    def requests(self) -> list[Request]:
        """What was asked and answered, in the order in which it was asked."""
        return self._server.requests

    def forget_requests(self) -> None:
        """Begins the list of requests anew."""
        self._server.forget_requests()

    def _answer(self, asked: Asked) -> Answer:
        answer = self._without_faults(asked).ranged(asked.headers.get("range"))
        return self.faults.apply(f"{asked.method} {asked.target}", answer)

    def _without_faults(self, asked: Asked) -> Answer:
        path, _, query = asked.target.partition("?")
        fields = parse_qs(query, keep_blank_values=True)
        if path == PREFIX or path.startswith(PREFIX + "/"):
            if asked.method == "POST":
                return json_answer({"error": "method not allowed"}, 405)
            return self._sol.answer(path.removeprefix(PREFIX), fields)
        return self._hub.answer(path, fields, asked.headers, asked.body)


def main(arguments: list[str] | None = None) -> None:
    """Serves a folder until interrupted, and prints the settings with which the pipeline talks to it."""
    parser = argparse.ArgumentParser(prog="python -m replica.server", description="Serve a corpus as upstream does.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0, help="a free one by default")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder; write one with python -m replica.corpus {options.folder}")
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with Replica(options.folder, port=options.port) as replica:
        print(f"HF_ENDPOINT={replica.hub_endpoint}")
        print(f"KERNELMART_SOL_URL={replica.sol_url}")
        print("KERNELMART_SOL_INTERVAL_MS=0", flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
