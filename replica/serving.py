"""A bounded HTTP/1.1 server on loopback that sends what a function answers, and remembers what it sent."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from replica.answers import Answer, FilePart

_CONNECTIONS = 64
_IDLE_SECONDS = 20
_LARGEST_BODY = 1 << 20
# How long a look at the list of requests waits for those that are still being answered.
_SETTLING_SECONDS = 2.0
# The option that makes closing a socket a reset: linger for no time.
_AT_ONCE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Asked:
    """A request as it came: `target` is its path and query, still encoded; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Request:
    """A request that was answered.

    `query` has the last value of each field; `status` is 0 where the connection was closed without an answer;
    `bytes_sent` counts bytes of the content, without headers, that went out; `range` is the header that asked for one.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    status: int
    bytes_sent: int
    range: str | None


class Server:
    """Sends what `answer` says, on a thread for each connection, at one or more ports.

    Args:
        answer: makes the answer to a request.
        ports: where to listen; 0 takes a free one.
    """

    def __init__(self, answer: Callable[[Asked], Answer], *ports: int) -> None:
        self.answer = answer
        self.stopping = threading.Event()
        self.errors: list[Exception] = []
        self._log: dict[int, Request | None] = {}
        self._numbers = 0
        self._settled = threading.Condition()
        self._listeners = [_Listener(("127.0.0.1", port), self) for port in ports or (0,)]
        self._threads = [
            threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True) for listener in self._listeners
        ]

    @property
    def urls(self) -> list[str]:
        """Where the server listens, in the order of the ports that were asked for."""
        return [f"http://127.0.0.1:{listener.server_address[1]}" for listener in self._listeners]

    def start(self) -> None:
        """Begins to serve."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends every connection and frees the ports."""
        self.stopping.set()
        for listener, thread in zip(self._listeners, self._threads, strict=True):
            listener.shutdown()
            thread.join()
            listener.server_close()
            listener.end_connections()

    @property
    def requests(self) -> list[Request]:
        """Answered requests, in the order in which they came."""
        with self._settled:
            self._settled.wait_for(lambda: None not in self._log.values(), _SETTLING_SECONDS)
            return [request for _, request in sorted(self._log.items()) if request is not None]

    def forget_requests(self) -> None:
        """Begins the list anew."""
        _ = self.requests
        with self._settled:
            self._log.clear()

    def begin(self) -> int:
        """A number for a request that came."""
        with self._settled:
            self._numbers += 1
            self._log[self._numbers] = None
            return self._numbers

    def end(self, number: int, asked: Asked, status: int, bytes_sent: int) -> None:
        """Puts a request on the list."""
        path, _, query = asked.target.partition("?")
        fields = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        request = Request(asked.method, path, fields, asked.headers, status, bytes_sent, asked.headers.get("range"))
        with self._settled:
            self._log[number] = request
            self._settled.notify_all()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: Server) -> None:
        self.owner = owner
        self._room = threading.BoundedSemaphore(_CONNECTIONS)
        self._open: dict[socket.socket, threading.Thread | None] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        while not self._room.acquire(timeout=0.1):
            if self.owner.stopping.is_set():
                self.shutdown_request(request)
                return
        with self._lock:
            self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open[request] = threading.current_thread()
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error; anything else the handler has noted."""

    def end_connections(self) -> None:
        with self._lock:
            left = dict(self._open)
        for connection in left:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in left.values():
            if thread is not None:
                thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "replica"
    sys_version = ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the server has a list of its own."""

    def do_GET(self) -> None:
        self._respond()

    def do_HEAD(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def do_CONNECT(self) -> None:
        self._respond()

    def _respond(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("Content-Length") or 0)
        if length > _LARGEST_BODY:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, body)
        number, status, sent = owner.begin(), 0, 0
        try:
            answer = owner.answer(asked)
            if not answer.delivery.refused:
                status = answer.status
                self._send_head(answer)
                for piece in self._pieces(answer):
                    self.wfile.write(piece)
                    sent += len(piece)
            self._end(answer)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            owner.errors.append(error)
            self.close_connection = True
            raise
        finally:
            owner.end(number, asked, status, sent)

    def _send_head(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(answer.size)}.items():
            self.send_header(name, value)
        if answer.delivery.endless_headers:
            self.flush_headers()
            while not self.server.owner.stopping.wait(answer.delivery.pause):
                self.wfile.write(b"-")
        self.end_headers()

    def _pieces(self, answer: Answer) -> Iterator[bytes]:
        """The content as it goes out, with the pauses that the answer wants."""
        if self.command == "HEAD" or answer.status in (204, 304):
            return
        delivery = answer.delivery
        left = answer.size if delivery.stop_after is None else min(delivery.stop_after, answer.size)
        for piece in _cut(answer.content, delivery.piece):
            if left <= 0 or self.server.owner.stopping.is_set():
                return
            yield piece[:left]
            left -= len(piece)
            if delivery.pause:
                self.server.owner.stopping.wait(delivery.pause)

    def _end(self, answer: Answer) -> None:
        """Closes the connection where the answer is cut off, or says so."""
        delivery = answer.delivery
        cut = delivery.refused or delivery.stop_after is not None or self.server.owner.stopping.is_set()
        if not cut and "close" not in answer.headers.get("Connection", ""):
            return
        self.close_connection = True
        if delivery.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.rfile.close()
            self.connection.close()


def _cut(content: bytes | FilePart, size: int) -> Iterator[bytes]:
    if isinstance(content, bytes):
        for start in range(0, len(content), size):
            yield content[start : start + size]
        return
    with content.path.open("rb") as file:
        file.seek(content.offset)
        left = content.length
        while left > 0 and (piece := file.read(min(size, left))):
            yield piece
            left -= len(piece)
