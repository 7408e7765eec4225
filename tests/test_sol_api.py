"""The client of SOL-ExecBench's API, over real connections on loopback."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assets.sol_execbench.asking import AnswerError, NotThereError, ServiceError
from pipelines.sol_api import Limits, SolApi
from replica import faults
from replica.answers import Answer
from replica.proxy import RefusingProxy
from replica.server import Replica
from replica.sol_service import PREFIX
from tests.sol_upstream import HURRY, hurried, write_upstream
from warehouse.errors import KernelmartError


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    with Replica(write_upstream(tmp_path, {1: []})) as running:
        yield running


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Waits:
    """A sleep that takes no time, and what it was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def test_it_says_who_asks_and_gives_nobodys_password(
    replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password hush\ndefault login somebody password hush\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert b"001_copy" in hurried(replica).get(["kernels"], {})
    (request,) = replica.requests
    assert request.headers["user-agent"].startswith("kernelmart/")
    assert "authorization" not in request.headers


def test_cookies_are_not_kept(replica: Replica) -> None:
    replica.faults.add("kernels", lambda answer: answer.with_headers(Set_Cookie="visitor=1; Path=/"), times=None)
    api = hurried(replica)
    for _ in range(2):
        api.get(["kernels"], {})
    assert ["cookie" in request.headers for request in replica.requests] == [False, False]


def test_requests_start_no_sooner_than_the_interval_allows(replica: Replica) -> None:
    arrivals: list[float] = []

    def note(answer: Answer) -> Answer:
        arrivals.append(time.monotonic())
        return answer

    replica.faults.add(".", note, times=None)
    started = time.monotonic()
    api = SolApi(replica.sol_url, 0.05)
    for _ in range(4):
        api.get(["kernels"], {})
    # A request cannot arrive before it starts, so the last of four arrives three intervals after the first started.
    assert [at - started >= 0.05 * number for number, at in enumerate(arrivals)] == [True] * 4


def test_time_spent_waiting_for_an_answer_counts_towards_the_interval(replica: Replica) -> None:
    waits, now = Waits(), [100.0]

    def clock() -> float:
        return now[0]

    api = SolApi(replica.sol_url, 0.12, clock=clock, sleep=waits)
    api.get(["kernels"], {})
    now[0] += 0.05
    api.get(["kernels"], {})
    now[0] += 5.0
    api.get(["kernels"], {})
    assert waits.seconds == [pytest.approx(0.07)]


@pytest.mark.parametrize("as_date", [False, True])
def test_a_wait_that_the_service_asks_for_is_kept(replica: Replica, as_date: bool) -> None:
    replica.faults.add("kernels", faults.too_many_requests(90, as_date=as_date))
    waits = Waits()
    api = SolApi(replica.sol_url, 0.0, sleep=waits)
    assert b"001_copy" in api.get(["kernels"], {})
    (wait,) = waits.seconds
    # A date has whole seconds, and some of them may have passed.
    assert wait == 90 if not as_date else 30 < wait <= 90
    assert [request.status for request in replica.requests] == [429, 200]


@pytest.mark.parametrize("as_date", [False, True])
def test_a_service_that_asks_for_a_long_wait_is_left_alone(replica: Replica, as_date: bool) -> None:
    replica.faults.add("kernels", faults.too_many_requests(86_400, as_date=as_date), times=None)
    waits = Waits()
    with pytest.raises(ServiceError, match=r"^127\.0\.0\.1 answered 429 and wants to be left alone for 8\d+ s"):
        SolApi(replica.sol_url, 0.0, sleep=waits).get(["kernels"], {})
    assert waits.seconds == []
    assert len(replica.requests) == 1


@pytest.mark.parametrize("fault", [faults.too_many_requests(), faults.server_error(503)])
def test_waits_double_and_are_lengthened_by_chance(replica: Replica, fault: faults.Fault) -> None:
    replica.faults.add("kernels", fault, times=4)
    waits = Waits()
    # A clock that stands still: all that is slept is the interval and the waits.
    api = SolApi(replica.sol_url, 0.25, clock=lambda: 0.0, sleep=waits)
    assert b"001_copy" in api.get(["kernels"], {})
    assert waits.seconds[1::2] == [0.25] * 4
    assert [least <= wait <= 2 * least for least, wait in zip((2.5, 5, 10, 20), waits.seconds[::2], strict=True)] == [
        True
    ] * 4


def test_errors_that_do_not_clear_end_one_request(replica: Replica) -> None:
    replica.faults.add("kernels/1", faults.server_error(), times=None)
    api = hurried(replica)
    with pytest.raises(AnswerError, match=r"^127\.0\.0\.1 answered 500, 5 times; ingest later$"):
        api.get(["kernels", "1"], {})
    assert len(replica.requests) == 5
    assert b"001_copy" in api.get(["kernels"], {})


def test_a_run_has_a_budget_of_retries(replica: Replica) -> None:
    replica.faults.add("kernels/1", faults.server_error(), times=None)
    api = hurried(replica, attempts=3, retries=3)
    with pytest.raises(AnswerError, match="3 times"):
        api.get(["kernels", "1"], {})
    with pytest.raises(ServiceError, match="this run has made its 3 retries"):
        api.get(["kernels", "1"], {})
    assert len(replica.requests) == 5


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (faults.refused(), "closed the connection before it had answered"),
        (faults.reset_midway(), "(closed the connection before it had answered|broke off its answer)"),
        (faults.short_body(), "broke off its answer"),
    ],
)
def test_a_connection_that_breaks_is_tried_again(replica: Replica, fault: faults.Fault, what: str) -> None:
    replica.faults.add("kernels$", fault, times=2)
    assert b"001_copy" in hurried(replica).get(["kernels"], {})
    assert len(replica.requests) == 3
    replica.faults.add("kernels/1", fault, times=None)
    with pytest.raises(AnswerError, match=rf"^127\.0\.0\.1 {what}, 2 times; ingest later$"):
        hurried(replica, attempts=2).get(["kernels", "1"], {})


def test_nobody_at_the_address_ends_the_run() -> None:
    api = SolApi(f"http://127.0.0.1:{closed_port()}/api", 0.0, HURRY)
    with pytest.raises(ServiceError, match=r"^127\.0\.0\.1 cannot be reached, 5 times; ingest later$"):
        api.get(["kernels"], {})


def test_a_slow_drip_is_not_waited_for(replica: Replica) -> None:
    replica.faults.add("kernels", faults.slow_drip(pause=0.02), times=None)
    with pytest.raises(AnswerError, match=r"took longer than 0\.1 s for one answer, 2 times"):
        hurried(replica, total_seconds=0.1, attempts=2).get(["kernels"], {})


def test_silence_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limits = Limits(read_seconds=0.1, attempts=2)
        api = SolApi(f"http://127.0.0.1:{silent.getsockname()[1]}/api", 0.0, limits)
        with pytest.raises(AnswerError, match="did not answer in time, 2 times"):
            api.get(["kernels"], {})


def test_an_answer_of_any_size_is_cut_off(replica: Replica) -> None:
    with pytest.raises(AnswerError, match="sent more than 20 bytes in one answer"):
        hurried(replica, largest_bytes=20).get(["kernels"], {})
    assert len(replica.requests) == 1


@pytest.mark.parametrize(
    ("location", "told"),
    [("https://elsewhere.example/a?token=hush", "'elsewhere.example'"), ("/x", "'another address'")],
)
def test_a_redirect_is_not_followed(replica: Replica, location: str, told: str) -> None:
    replica.faults.add("kernels", faults.redirect(location))
    with pytest.raises(AnswerError, match=f"redirects to {told}, which is not followed") as caught:
        hurried(replica).get(["kernels"], {})
    assert "hush" not in str(caught.value)
    assert len(replica.requests) == 1


def test_what_is_not_there_is_told_apart(replica: Replica) -> None:
    with pytest.raises(NotThereError):
        hurried(replica).get(["kernels", "9"], {})
    assert len(replica.requests) == 1


def test_names_are_quoted_and_never_another_path(replica: Replica) -> None:
    api = hurried(replica)
    with pytest.raises(NotThereError):
        api.get(["leaderboard", "kernel", "1", "A/B ?#é%2e"], {"evaluation_stack_version": "v1&x=2"})
    (request,) = replica.requests
    assert request.path == f"{PREFIX}/leaderboard/kernel/1/A%2FB%20%3F%23%C3%A9%252e"
    assert request.query == {"evaluation_stack_version": "v1&x=2"}
    for name in ("", ".", ".."):
        with pytest.raises(AnswerError, match="cannot be asked for"):
            api.get(["leaderboard", "kernel", "1", name], {})
    assert len(replica.requests) == 1


@pytest.mark.parametrize(
    "address",
    ["http://research.example/api", "ftp://127.0.0.1/api", "https://", "127.0.0.1", "http://[::1", "file:///x"],
)
def test_only_https_is_asked_outside_loopback(address: str) -> None:
    with pytest.raises(KernelmartError, match=r"^the (address of the )?SOL-ExecBench API"):
        SolApi(address)


@pytest.mark.parametrize("address", ["https://research.example/api/", "http://localhost:1/api", "http://[::1]:1/api"])
def test_these_addresses_may_be_asked(address: str) -> None:
    SolApi(address)


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(KernelmartError, match="no user name or password") as caught:
        SolApi("https://somebody:hush@research.example/api")
    assert "hush" not in str(caught.value)


def test_the_proxy_of_the_environment_is_used(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    with RefusingProxy(Answer(200, content=b'{"data": 1}')) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert hurried(replica).get(["kernels"], {}) == b'{"data": 1}'
        assert [request.path for request in proxy.requests] == [f"{replica.sol_url}/kernels"]
    assert replica.requests == []


def test_a_proxy_that_is_not_there_ends_the_run(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://somebody:hush@127.0.0.1:{closed_port()}")
    with pytest.raises(ServiceError, match="the proxy of the environment refuses, 5 times") as caught:
        hurried(replica).get(["kernels"], {})
    assert "hush" not in str(caught.value)
    assert replica.requests == []


def test_a_proxy_that_refuses_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with RefusingProxy() as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//somebody:hush@"))
        with pytest.raises(ServiceError, match="the proxy of the environment refuses") as caught:
            SolApi("https://research.example/api", 0.0, HURRY).get(["kernels"], {})
        assert [request.path for request in proxy.requests] == ["research.example:443"] * 5
    assert "hush" not in str(caught.value)


def test_a_proxy_that_wants_other_credentials_is_told(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    with RefusingProxy(Answer(407)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.raises(ServiceError, match=r"wants other credentials \(407\)"):
            hurried(replica).get(["kernels"], {})
        assert len(proxy.requests) == 1


def test_one_connection_serves_all_requests(replica: Replica) -> None:
    opened: list[object] = []
    connect = socket.socket.connect

    class Noted(socket.socket):
        def connect(self, address: Any) -> None:
            opened.append(address)
            connect(self, address)

    api = hurried(replica)
    original, socket.socket = socket.socket, Noted  # type: ignore[misc]
    try:
        for _ in range(3):
            api.get(["kernels"], {})
            with pytest.raises(NotThereError):
                api.get(["kernels", "9"], {})
    finally:
        socket.socket = original  # type: ignore[misc]
    assert len(opened) == 1
