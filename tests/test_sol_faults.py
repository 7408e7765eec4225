"""What can go wrong at SOL-ExecBench: each fault is recovered from, or is one line and the last good answers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assets.sol_execbench.build import build_tables, check_answers
from assets.sol_execbench.walks import Walks
from replica import changes, faults
from replica.proxy import RefusingProxy
from replica.server import Replica
from tests.sol_upstream import NIGHT, Upstream, asked, put, submissions, walked, write_upstream
from warehouse.errors import UnreadableError
from warehouse.parts import Part, PartStore
from warehouse.raw import Collection

LATER = NIGHT + timedelta(hours=1)
PAGE = "/submissions\\?kernel_id=3&"
# Faults of one answer, and the words in which an operator is told of one that stays.
BROKEN = {
    "refused": (faults.refused(), "closed the connection before it had answered, 5 times"),
    "reset midway": (
        faults.reset_midway(),
        r"(closed the connection before it had answered|broke off its answer), 5 t",
    ),
    "wrong length": (faults.short_body(), "broke off its answer, 5 times"),
    "truncated": (faults.truncated(), "the answer is not JSON"),
    "web page": (faults.web_page(), "the answer is a web page, not JSON"),
    "pointer": (faults.pointer_file(), "the answer is a Git LFS pointer"),
    "key twice": (faults.key_twice("total"), "the answer names one key twice"),
    "empty page": (faults.empty_listing(), "there are no submissions, though 3 are listed"),
    "429": (faults.too_many_requests(), "answered 429, 5 times"),
    "429 with a wait": (faults.too_many_requests(0.01), "answered 429, 5 times"),
    "500": (faults.server_error(), "answered 500, 5 times"),
    "503": (faults.server_error(503), "answered 503, 5 times"),
    "redirect": (faults.redirect("https://elsewhere.example/"), "redirects to 'elsewhere.example', which is not foll"),
    "slow drip": (faults.slow_drip(pause=0.02), r"took longer than 0\.1 s for one answer, 5 times"),
}


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    write_upstream(tmp_path / "upstream", {number: submissions(number, 2) for number in range(1, 6)})
    with Replica(tmp_path / "upstream") as replica:
        yield Upstream(tmp_path, replica)


def whole(upstream: Upstream, collection: Collection) -> bool:
    """Whether the store holds what it says, and nothing half written."""
    for file in collection.files:
        file.require_whole()
    left = [path for path in upstream.raw.root.rglob("*") if path.name.startswith(".")]
    return not left and not list(upstream.raw.damaged())


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "redirect"])
def test_a_fault_that_passes_leaves_no_trace(upstream: Upstream, name: str) -> None:
    expected = upstream.clean().inputs()
    changes.submissions_arrive(upstream.folder, 3)
    rule = upstream.replica.faults.add(PAGE, BROKEN[name][0])
    collection = upstream.pull(LATER, total_seconds=0.1)
    assert (collection.stale, collection.unreadable) == ((), ())
    assert rule.used == 1
    assert {file["locator"] for file in collection.inputs() if file not in expected} == {
        *("kernels.json", "submissions/3.json")
    }
    assert whole(upstream, collection)


def test_headers_that_drip_are_asked_for_again(upstream: Upstream) -> None:
    rule = upstream.replica.faults.add(PAGE, faults.endless_headers(pause=0.02))
    collection = upstream.pull(total_seconds=0.2)
    assert (collection.stale, collection.unreadable) == ((), ())
    assert rule.used == 1
    assert whole(upstream, collection)


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_that_stays_is_one_line_and_the_last_good_answers(upstream: Upstream, name: str) -> None:
    before = upstream.clean()
    for number in (3, 4):
        changes.submissions_arrive(upstream.folder, number)
    fault, words = BROKEN[name]
    upstream.replica.faults.add(PAGE, fault, times=None)
    after = upstream.pull(LATER, total_seconds=0.1)
    (line,) = after.stale
    assert line.startswith(("submissions/3.json: ", "sol-execbench: "))
    assert "\n" not in line
    assert re.search(words, line)
    assert after.unreadable == ()
    same = [file for file in before.inputs() if "/3." in file["locator"]]
    assert [file for file in after.inputs() if "/3." in file["locator"]] == same
    assert whole(upstream, after)
    upstream.replica.faults.clear()
    upstream.clean(LATER + timedelta(hours=1))
    assert 3 in walked(upstream.replica)


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "empty page"])
def test_without_last_good_answers_a_kernel_is_unreadable(upstream: Upstream, name: str) -> None:
    fault, words = BROKEN[name]
    upstream.replica.faults.add(PAGE, fault, times=None)
    collection = upstream.pull(total_seconds=0.1)
    (locator, _), *_ = collection.unreadable
    assert locator in ("submissions/3.json", "kernels/3.json")
    with pytest.raises(UnreadableError, match=f"^{locator}: .*{words}"):
        check_answers(collection, None)


@pytest.mark.parametrize(
    "name", [*(name for name in BROKEN if name not in ("key twice", "empty page")), "empty listing", "404"]
)
def test_without_a_listing_the_last_good_answers_stay(upstream: Upstream, name: str) -> None:
    fault, words = BROKEN.get(name, (faults.empty_listing(), "names no kernel"))
    if name == "404":
        fault, words = faults.server_error(404), "there is no such thing"
    rule = upstream.replica.faults.add("/api/kernels$", fault, times=None)
    with pytest.raises(UnreadableError, match=f"^sol-execbench: there is no listing of kernels: .*{words}"):
        upstream.pull(total_seconds=0.1)
    upstream.replica.faults.clear()
    before = upstream.clean()
    upstream.replica.faults.add("/api/kernels$", rule.fault, times=None)
    after = upstream.pull(LATER, total_seconds=0.1)
    assert after.files == before.files
    (line,) = after.stale
    assert line.startswith("sol-execbench: there is no listing of kernels: ")
    assert re.search(words, line)
    assert walked(upstream.replica) == []
    assert whole(upstream, after)


def test_a_byte_that_was_spoilt_on_its_way_is_asked_for_again(upstream: Upstream) -> None:
    expected = upstream.clean().inputs()
    upstream.replica.faults.add("kernels/3$", faults.wrong_bytes())
    upstream.replica.faults.add("/submissions", faults.wrong_bytes())
    Walks({}, set(), Walks.of(upstream.raw).values).write(upstream.raw)
    assert upstream.clean(LATER).inputs() == expected
    assert walked(upstream.replica) == [1, 2, 3, 3, 4, 5]


def test_numbers_that_are_none_and_repeated_keys_cost_their_rows_alone(upstream: Upstream, tmp_path: Path) -> None:
    upstream.replica.faults.add("kernel_id=2&", faults.not_a_number("latency_ms"), times=None)
    upstream.replica.faults.add("kernel_id=3&", faults.key_twice("latency_ms"), times=None)
    store = PartStore(tmp_path / "tables")
    parts = build_tables(store, check_answers(upstream.clean(), None))
    part = Part((store.root / parts["runs"][0]).parent)
    assert [(row["locator"], row["item"], row["reason"]) for row in part.read("rejects").to_pylist()] == [
        ("submissions/3.json", "submissions/0", "DUPLICATE_KEYS")
    ]
    flagged = [row for row in part.read("runs").to_pylist() if row["flags"]]
    assert [(row["external_id"], row["flags"]) for row in flagged] == [("submission/2002", ["NOT_FINITE:latency_ms"])]
    assert part.read("runs").num_rows == 9


def test_a_listed_kernel_whose_entry_is_odd_keeps_its_answers(upstream: Upstream) -> None:
    before = upstream.clean()
    upstream.replica.faults.add("/api/kernels$", faults.key_twice("name"), times=None)
    after = upstream.clean(LATER)
    assert {file.locator for file in after.files} == {file.locator for file in before.files}


def test_a_service_that_goes_down_is_left_alone_and_the_walk_goes_on_the_next_time(upstream: Upstream) -> None:
    before = upstream.clean()
    for number in (1, 2, 4, 5):
        changes.submissions_arrive(upstream.folder, number)
    upstream.replica.faults.add("kernels/[2-5]", faults.server_error(502), times=None)
    after = upstream.pull(LATER, retries=3)
    (line,) = after.stale
    assert line == (
        "sol-execbench: 127.0.0.1 answered 502, and this run has made its 3 retries; ingest later "
        "(stopped at kernel 2, 3 of 4 left; the next ingest goes on there)"
    )
    assert walked(upstream.replica) == [1, 2, 2, 2, 2]
    assert {file["locator"] for file in after.inputs() if file not in before.inputs()} == {
        *("kernels.json", "submissions/1.json")
    }
    upstream.replica.faults.clear()
    upstream.clean(LATER + timedelta(hours=1))
    assert walked(upstream.replica) == [2, 4, 5]


def test_a_first_walk_that_is_broken_off_is_one_line_and_goes_on_the_next_time(upstream: Upstream) -> None:
    upstream.replica.faults.add("kernels/[3-5]", faults.refused(), times=None)
    collection = upstream.pull(retries=2)
    ((locator, reason),) = collection.unreadable
    assert locator == "kernels/3.json"
    assert "(stopped at kernel 3, 3 of 5 left; the next ingest goes on there)" in reason
    with pytest.raises(UnreadableError, match=r"^kernels/3\.json: .*the next ingest goes on there"):
        check_answers(collection, None)
    upstream.replica.faults.clear()
    assert len(upstream.clean(LATER).files) == 11
    assert walked(upstream.replica) == [3, 4, 5]


def test_a_new_kernel_that_was_not_reached_keeps_nothing_else_from_being_published(upstream: Upstream) -> None:
    upstream.clean()
    put(upstream.folder, "kernels.json", {"kernels": [{"id": n, "submission_count": 2} for n in range(1, 7)]})
    upstream.replica.faults.add("kernels/6", faults.refused(), times=None)
    after = upstream.pull(LATER, retries=0)
    assert after.unreadable == ()
    assert len(after.stale) == 1
    assert len(after.files) == 11


def test_many_kernels_that_fail_are_a_few_lines(tmp_path: Path) -> None:
    write_upstream(tmp_path / "upstream", {number: submissions(number, 1) for number in range(1, 31)})
    with Replica(tmp_path / "upstream") as replica:
        upstream = Upstream(tmp_path, replica)
        upstream.clean()
        for number in range(1, 31):
            changes.submissions_arrive(upstream.folder, number)
        replica.faults.add("/submissions", faults.web_page(), times=None)
        stale = upstream.pull(LATER).stale
        assert len(stale) == 6
        assert stale[-1] == "sol-execbench: 25 more kernels keep their last good answers"


def test_what_fails_every_night_never_keeps_others_from_their_turn(upstream: Upstream) -> None:
    upstream.clean()
    for number in range(1, 6):
        changes.submissions_arrive(upstream.folder, number)
    upstream.replica.faults.add("kernels/[12]$", faults.server_error(), times=None)
    first = upstream.pull(LATER, retries=6)
    assert len(first.stale) == 2
    assert walked(upstream.replica) == [1] * 5 + [2] * 3
    upstream.pull(LATER + timedelta(minutes=1), retries=6)
    assert walked(upstream.replica)[:3] == [2, 2, 2]


def test_a_definition_that_is_gone_leaves_the_last_good_one(upstream: Upstream) -> None:
    before = upstream.clean()
    changes.submissions_arrive(upstream.folder, 3)
    (upstream.folder / "sol_execbench/kernels/3.json").unlink()
    after = upstream.pull(LATER)
    (line,) = after.stale
    assert line == "kernels/3.json: the kernel is listed, but not there (404); the answers of 2026-11-30 are used"
    assert [file for file in after.files if "/3." in file.locator] == [
        file for file in before.files if "/3." in file.locator
    ]


def test_a_definition_that_says_nothing_leaves_the_last_good_one(upstream: Upstream) -> None:
    before = upstream.clean()
    changes.submissions_arrive(upstream.folder, 3)
    put(upstream.folder, "kernels/3.json", None)
    after = upstream.pull(LATER)
    assert after.stale == ("kernels/3.json: the answer has no definition; the answers of 2026-11-30 are used",)
    assert [file for file in after.files if "/3." in file.locator] == [
        file for file in before.files if "/3." in file.locator
    ]


def test_submissions_that_the_listing_no_longer_counts_may_go(upstream: Upstream) -> None:
    upstream.clean()
    for _ in range(2):
        changes.submission_goes(upstream.folder, 3)
    after = upstream.clean(LATER)
    assert walked(upstream.replica) == [3]
    assert len(after.files) == 11


def test_a_kernel_that_was_never_there_is_told_and_does_no_harm(upstream: Upstream) -> None:
    (upstream.folder / "sol_execbench/kernels/3.json").unlink()
    collection = upstream.clean()
    assert [file.locator for file in collection.files if "/3." in file.locator] == []
    upstream.clean(LATER)
    assert asked(upstream.replica) == ["kernels"]


def test_a_refusing_proxy_leaves_the_last_good_answers(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    before = upstream.clean()
    with RefusingProxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        after = upstream.pull(LATER)
        assert len(proxy.requests) == 1
    assert after.files == before.files
    assert len(after.stale) == 1
    assert upstream.replica.requests == []


def test_a_redirect_never_takes_a_request_elsewhere(upstream: Upstream, tmp_path: Path) -> None:
    write_upstream(tmp_path / "other", {1: []})
    with Replica(tmp_path / "other") as other:
        upstream.replica.faults.add("kernels", faults.redirect(f"{other.sol_url}/kernels"), times=None)
        with pytest.raises(UnreadableError, match=r"redirects to '127\.0\.0\.1', which is not followed"):
            upstream.pull()
        assert other.requests == []


def test_a_full_disk_is_one_line_and_what_was_kept_stays(upstream: Upstream, tmp_path: Path) -> None:
    expected = upstream.clean().inputs()
    changes.submissions_arrive(upstream.folder, 2, 40)
    script = """
import resource, sys
from datetime import datetime
from pathlib import Path
from assets.sol_execbench.pull import pull
from pipelines.sol_api import SolApi
from warehouse.errors import HomeError
from warehouse.raw import RawStore
resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
try:
    pull(SolApi(sys.argv[1], 0.0), RawStore(Path(sys.argv[2])), None, datetime.fromisoformat(sys.argv[3]))
except HomeError as error:
    print(error)
"""
    words = [sys.executable, "-c", script, upstream.replica.sol_url, str(tmp_path / "raw"), LATER.isoformat()]
    output = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert output == f"submissions/2.json: cannot be kept in {tmp_path / 'raw'}: File too large\n"
    assert upstream.last_good is not None
    assert upstream.last_good.inputs() == expected
    assert whole(upstream, upstream.last_good)
    upstream.clean(LATER)
    assert walked(upstream.replica) == [2]
