"""An S3 server on loopback that remembers what it was asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
import pytest
import requests
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "kernels"
SECRET = "not-for-any-log-9f31"  # noqa: S105


class _Silent(WSGIRequestHandler):
    def log_request(self, *_: Any, **__: Any) -> None:
        """Tests read what was asked for, and nobody its lines."""


@dataclass(frozen=True)
class Asked:
    """One request: method, key inside the bucket, and what a copy is made of."""

    method: str
    key: str
    copy_of: str | None


@dataclass
class S3Server:
    """moto's server; each request is remembered, and `before` and `after` it something may happen."""

    asked: list[Asked] = field(default_factory=list)
    before: Callable[[Asked], None] | None = None
    after: Callable[[Asked], None] | None = None
    port: int = 0

    def __post_init__(self) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)
        self._mutex = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @cached_property
    def client(self) -> Any:
        """A client that is told all it needs, whatever the environment says."""
        told = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
        return boto3.client("s3", endpoint_url=self.address, **told)

    @property
    def put(self) -> list[Asked]:
        """Requests that made an object, in order."""
        return [asked for asked in self.asked if asked.method == "PUT" and asked.key]

    def objects(self) -> dict[str, bytes]:
        """All objects of the bucket."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return {key: self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}

    def empty(self) -> None:
        """Forget all objects and buckets, which outlive a server in its process."""
        self.before = self.after = None
        requests.post(f"{self.address}/moto-api/reset", timeout=30)

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        bucket, _, key = environment["PATH_INFO"].strip("/").partition("/")
        asked = Asked(environment["REQUEST_METHOD"], key, environment.get("HTTP_X_AMZ_COPY_SOURCE"))
        ours = bucket == BUCKET and "boto3" not in environment.get("HTTP_USER_AGENT", "").lower()
        if ours:
            with self._mutex:
                self.asked.append(asked)
            if self.before:
                self.before(asked)
        answer: Iterable[bytes] = self._application(environment, start)
        if ours and self.after:
            answer = list(answer)
            self.after(asked)
        return answer


@contextmanager
def serving() -> Iterator[S3Server]:
    """A server with an empty bucket."""
    application = S3Server()
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Silent)
    application.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        application.client.create_bucket(Bucket=BUCKET)
        yield application
    finally:
        application.empty()
        server.shutdown()
        thread.join()
        server.server_close()


def settings(server: S3Server) -> dict[str, str]:
    """What the environment of a client must say."""
    return {
        "AWS_ENDPOINT_URL": server.address,
        "AWS_ACCESS_KEY_ID": "kernelmart",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def use(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clients in this process ask a server, and none that they asked before."""
    from s3fs import S3FileSystem

    for name, value in settings(server).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    S3FileSystem.clear_instance_cache()
