"""`kernelmart dev` as a process of its own, on a home and against a replica."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from replica.server import Replica

PROJECT = Path(__file__).resolve().parent.parent.parent
_PATIENCE_SECONDS = 240


@contextmanager
def running(home: Path, replica: Replica, **environment: str) -> Iterator[str]:
    """The address of Dagster's pages; they and all their processes are gone afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    log = home.parent / "dev.log"
    settings = {
        **os.environ, "HF_ENDPOINT": replica.hub_endpoint, "KERNELMART_SOL_URL": replica.sol_url,
        "KERNELMART_SOL_INTERVAL_MS": "0", "PYTHONPATH": str(PROJECT), **environment,
    }  # fmt: skip
    words = [sys.executable, "-m", "pipelines.cli", "dev", "--home", str(home), "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=PROJECT, env=settings, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url, process, log)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        # Whatever of it is left, servers of code among it, which wait for a sign of life for a while.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def asked(url: str, query: str, **variables: Any) -> Any:
    """What Dagster's own interface answers."""
    answer = requests.post(f"{url}/graphql", json={"query": query, "variables": variables}, timeout=60).json()
    assert "errors" not in answer, answer
    return answer["data"]


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            requests.get(f"{url}/server_info", timeout=5).raise_for_status()
        except requests.RequestException:
            assert process.poll() is None, log.read_text()
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"{url} did not come up:\n{log.read_text()}")
