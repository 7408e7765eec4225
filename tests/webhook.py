"""A webhook as tests need one: a real HTTP server on loopback that keeps what it was sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Stands in the path, as the secrets of chat services' webhooks do.
UNSPEAKABLE = "T0PS3CRET"


class Webhook:
    """What was sent, and how to answer it: with `status`, and with `headers`, which never end while it `drips`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/hooks/{UNSPEAKABLE}"
        self.messages: list[dict[str, Any]] = []
        self.headers_sent: list[dict[str, str]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.drips = False

    @property
    def states(self) -> list[tuple[str, str]]:
        """Incident and state of each message, in order."""
        return [(message["incident"], message["state"]) for message in self.messages]


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            hook.messages.append(json.loads(body))
            hook.headers_sent.append(dict(self.headers))
            self.send_response(hook.status)
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.flush_headers()
            while hook.drips:
                self.wfile.write(b"-")
                time.sleep(0.01)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Webhook(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hook
    finally:
        hook.drips = False
        server.shutdown()
        thread.join()
        server.server_close()
