"""Headers that drip, from real servers on loopback: nobody waits for them beyond the deadline."""

from __future__ import annotations

import socket
import threading
from functools import partial

import pytest
import requests

from pipelines.deadlines import within


def test_headers_that_drip_are_left_at_the_deadline_and_what_comes_later_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        is_late = threading.Event()
        ended = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                while not is_late.wait(0.01):
                    connection.sendall(b"-")
                # No length: this answer ends when either side closes the connection.
                connection.sendall(b"\r\n\r\n")
                while connection.recv(1 << 16):
                    pass
                ended.set()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            get = partial(requests.get, f"http://{host}:{port}/", stream=True, timeout=5)
            with pytest.raises(TimeoutError, match=r"^no answer within 0\.2 s$"):
                within(0.2, get)
            is_late.set()
            assert ended.wait(5)
        finally:
            is_late.set()
            thread.join(10)
    assert not thread.is_alive()


def test_what_comes_in_time_is_the_response_and_errors_are_the_requests_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = "http://{}:{}/".format(*server.getsockname())
    with pytest.raises(requests.ConnectionError):
        within(5, partial(requests.get, url, timeout=5))
    assert within(5, requests.Response).status_code is None
