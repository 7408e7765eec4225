"""The pull of SOL-ExecBench: which kernels are walked when, what of their submissions is reached, and what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assets.sol_execbench.pull import oldest_walk
from assets.sol_execbench.read import Answer
from assets.sol_execbench.walks import ListedKernel, Walks
from replica import changes
from replica.faults import meanwhile, refused
from replica.server import Replica
from tests.sol_answers import listed, made_of
from tests.sol_upstream import NIGHT, Upstream, asked, put, put_submissions, submissions, walked, write_upstream
from warehouse.raw import Collection

DAY = timedelta(days=1)
_DEADLINE = 30.0


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Upstream]:
    write_upstream(tmp_path / "upstream", {number: submissions(number, 2) for number in range(1, 15)})
    with Replica(tmp_path / "upstream") as replica:
        yield Upstream(tmp_path, replica)


def saved(collection: Collection, locator: str) -> Any:
    (file,) = [file for file in collection.files if file.locator == locator]
    return json.loads(file.path.read_bytes())["data"]


def ids(collection: Collection, number: int) -> list[int]:
    """Submissions of a kernel on all of its saved pages, in order of pages."""
    pages = sorted(
        (len(file.locator), file.locator)
        for file in collection.files
        if file.locator.startswith(f"submissions/{number}.")
    )
    return [row["id"] for _, locator in pages for row in saved(collection, locator)["submissions"]]


def told(collection: Collection) -> list[tuple[str, str]]:
    """What the reader finds incomplete."""
    tables = made_of(Answer.of(file.locator, file.path.read_bytes()) for file in collection.files)
    return [(row["locator"], row["detail"]) for row in tables["drift"] if row["kind"] == "incomplete"]


def test_the_first_pull_asks_for_everything_once(upstream: Upstream) -> None:
    put(upstream.folder, "leaderboards/1.B200.v1.1.json", {"rankings": []})
    collection = upstream.clean()
    assert asked(upstream.replica)[:4] == [
        "kernels",
        "kernels/1",
        "submissions kernel_id=1 offset=0",
        "leaderboard/kernel/1/B200 evaluation_stack_version=v1.1",
    ]
    assert {request.query["limit"] for request in upstream.replica.requests if "limit" in request.query} == {"50"}
    assert walked(upstream.replica) == list(range(1, 15))
    assert [file.locator for file in collection.files[:5]] == [
        *("kernels.json", "kernels/1.json", "submissions/1.json", "leaderboards/1.B200.v1.1.json", "kernels/2.json")
    ]
    assert {file.fetched_at for file in collection.files} == {NIGHT}
    assert saved(collection, "kernels/7.json")["name"] == "007_copy"
    for file in collection.files:
        assert file.path.read_bytes() == (upstream.folder / "sol_execbench" / file.locator).read_bytes()


def test_a_night_without_changes_asks_for_the_listing_and_a_seventh(upstream: Upstream) -> None:
    before = upstream.clean()
    seen: list[list[int]] = []
    for night in range(1, 8):
        collection = upstream.clean(NIGHT + night * DAY)
        seen.append(walked(upstream.replica))
        assert collection.inputs() == before.inputs()
        assert asked(upstream.replica)[0] == "kernels"
        assert len(asked(upstream.replica)) == 1 + 3 * len(seen[-1])
    assert [len(night) for night in seen] == [2] * 7
    assert sorted(number for night in seen for number in night) == list(range(1, 15))
    assert oldest_walk(upstream.raw) == NIGHT + DAY


def test_a_kernel_is_walked_once_in_a_day_unless_it_changes(upstream: Upstream) -> None:
    upstream.clean()
    upstream.clean(NIGHT + timedelta(hours=20))
    assert asked(upstream.replica) == ["kernels"]
    upstream.clean(NIGHT + DAY)
    assert len(walked(upstream.replica)) == 2
    upstream.clean(NIGHT + DAY + timedelta(hours=1))
    assert asked(upstream.replica) == ["kernels"]
    changes.submissions_arrive(upstream.folder, 9)
    upstream.clean(NIGHT + DAY + timedelta(hours=2))
    assert walked(upstream.replica) == [9]


def test_a_kernel_whose_turn_was_missed_is_walked_after_seven_nights(upstream: Upstream) -> None:
    upstream.clean()
    first, second = Walks.of(upstream.raw), NIGHT + DAY
    (one, *_) = [kernel.id for kernel in _due(first, second)]
    # All but one were walked since; where that one stands by position must not matter.
    walks = Walks.of(upstream.raw)
    for number, known in list(walks.kernels.items()):
        if number != one:
            walks.kernels[number] = type(known)(second + 5 * DAY, known.submission_count, known.files)
    walks.write(upstream.raw)
    for night in (7, 8):
        assert one in [kernel.id for kernel in _due(Walks.of(upstream.raw), NIGHT + night * DAY)]


def _due(walks: Walks, now: datetime) -> list[Any]:
    walks.begun_at = now
    return walks.due([ListedKernel(number, 2) for number in range(1, 15)], now)


def test_a_changed_count_brings_new_submissions(upstream: Upstream) -> None:
    before = upstream.clean()
    (new,) = changes.submissions_arrive(upstream.folder, 3)
    after = upstream.clean(NIGHT + timedelta(hours=1))
    assert walked(upstream.replica) == [3]
    assert ids(after, 3) == [new, *ids(before, 3)]
    changed = {file["locator"] for file in after.inputs() if file not in before.inputs()}
    assert changed == {"kernels.json", "submissions/3.json"}
    (page,) = [file for file in after.files if file.locator == "submissions/3.json"]
    assert page.fetched_at == NIGHT + timedelta(hours=1)


def test_a_later_disqualification_is_seen_within_seven_nights(upstream: Upstream) -> None:
    upstream.clean()
    changes.submission_changes(upstream.folder, 12, 12_001, is_disqualified=True)
    for night in range(1, 8):
        after = upstream.clean(NIGHT + night * DAY)
    assert {row["id"]: row["is_disqualified"] for row in saved(after, "submissions/12.json")["submissions"]} == {
        12_001: True,
        12_002: False,
    }


def test_a_kernel_that_leaves_the_listing_takes_its_answers_along(upstream: Upstream) -> None:
    upstream.clean()
    put(upstream.folder, "kernels.json", {"kernels": [listed(n, submission_count=2) for n in range(2, 15)]})
    after = upstream.clean(NIGHT + timedelta(hours=1))
    assert not [file.locator for file in after.files if "/1." in file.locator]
    assert len(after.files) == 1 + 13 * 2
    put(upstream.folder, "kernels.json", {"kernels": [listed(n, submission_count=2) for n in range(1, 15)]})
    upstream.clean(NIGHT + timedelta(hours=2))
    assert walked(upstream.replica) == [1]


def test_what_a_listing_says_of_kernels_that_cannot_be_asked_for_does_no_harm(upstream: Upstream) -> None:
    odd = [listed(-1), listed("x"), listed(10**18), 17, listed("2"), listed(1, submission_count=None), listed(1)]
    put(upstream.folder, "kernels.json", {"kernels": odd})
    upstream.clean()
    assert walked(upstream.replica) == [1, 2]


def test_pages_are_walked_as_far_as_the_service_goes(upstream: Upstream) -> None:
    put_submissions(upstream.folder, 1, submissions(1, 70))
    collection = upstream.clean()
    assert ids(collection, 1) == list(range(1070, 1000, -1))
    assert asked(upstream.replica, "submissions")[:2] == [
        "submissions kernel_id=1 offset=0",
        "submissions kernel_id=1 offset=50",
    ]
    assert told(collection) == []


def test_filters_reach_what_offsets_do_not(upstream: Upstream) -> None:
    rows = [
        *submissions(1, 90, evaluation_stack_version="v1.0"),
        *submissions(2, 60, evaluation_stack_version="v1.1", status="FAILED", kernel_id=1),
        *submissions(3, 80, evaluation_stack_version="v1.1", kernel_id=1, gpu_type="H100"),
    ]
    put_submissions(upstream.folder, 1, rows)
    collection = upstream.clean()
    assert sorted(set(ids(collection, 1))) == sorted(row["id"] for row in rows)
    assert told(collection) == []
    pages = [file.locator for file in collection.files if file.locator.startswith("submissions/1.")]
    assert pages == ["submissions/1.json", *(f"submissions/1.{n}.json" for n in range(2, len(pages) + 1))]
    # Each page that was kept says something new.
    seen: set[int] = set()
    for locator in pages:
        shown = {row["id"] for row in saved(collection, locator)["submissions"]}
        assert shown - seen
        seen |= shown
    assert asked(upstream.replica, "leaderboard/kernel/1/") == [
        f"leaderboard/kernel/1/{gpu} evaluation_stack_version={stack}"
        for gpu, stack in (("B200", "v1.0"), ("B200", "v1.1"), ("H100", "v1.1"))
    ]


def test_what_stays_out_of_reach_is_said(upstream: Upstream) -> None:
    put_submissions(upstream.folder, 1, submissions(1, 130))
    collection = upstream.clean()
    assert len(set(ids(collection, 1))) == 100
    assert told(collection) == [("submissions/1.2.json", "130 reported, 100 obtained")]


def test_a_list_that_reaches_far_enough_is_not_narrowed_further(upstream: Upstream) -> None:
    put_submissions(upstream.folder, 1, [*submissions(1, 80, status="FAILED"), *submissions(2, 40, kernel_id=1)])
    upstream.clean()
    narrowed = [line for line in asked(upstream.replica, "submissions") if "kernel_id=1 " in line][2:]
    assert narrowed == [
        *(f"submissions kernel_id=1 offset={offset} evaluation_stack_version=v1.1" for offset in (0, 50)),
        "submissions kernel_id=1 offset=0 evaluation_stack_version=v1.1 status=COMPLETED",
    ]


@pytest.mark.parametrize("times", [1, 2])
def test_a_list_that_grows_while_it_is_walked_gives_each_submission_once(upstream: Upstream, times: int) -> None:
    put_submissions(upstream.folder, 1, submissions(1, 70))
    new: list[int] = []
    fault = meanwhile(lambda: new.extend(changes.submissions_arrive(upstream.folder, 1, counted=False)))
    upstream.replica.faults.add("kernel_id=1&.*offset=0", fault, times=times)
    collection = upstream.clean()
    assert len(new) == times
    assert ids(collection, 1) == sorted([*new, *range(1001, 1071)], reverse=True)
    assert told(collection) == []


def test_a_list_that_shrinks_while_it_is_walked_loses_no_other(upstream: Upstream) -> None:
    put_submissions(upstream.folder, 1, submissions(1, 70))
    fault = meanwhile(lambda: changes.submission_goes(upstream.folder, 1, counted=False))
    upstream.replica.faults.add("kernel_id=1&.*offset=0", fault)
    collection = upstream.clean()
    assert ids(collection, 1) == list(range(1069, 1000, -1))


def test_a_list_that_never_holds_still_is_walked_three_times_and_no_more(upstream: Upstream) -> None:
    put_submissions(upstream.folder, 1, submissions(1, 70))
    fault = meanwhile(lambda: changes.submissions_arrive(upstream.folder, 1, counted=False))
    upstream.replica.faults.add("kernel_id=1&.*offset=0", fault, times=None)
    collection = upstream.clean()
    assert len([line for line in asked(upstream.replica, "submissions") if "kernel_id=1 " in line]) == 6
    # The newest came when the first page was already there: they are seen the next time.
    assert set(ids(collection, 1)) == set(range(1001, 1073))
    assert told(collection) == [("submissions/1.2.json", "73 reported, 72 obtained")]


def test_names_of_hardware_never_mislead_in_a_saved_answers_name(upstream: Upstream) -> None:
    put_submissions(upstream.folder, 1, submissions(1, 1, gpu_type="../x.B200", evaluation_stack_version="v/1"))
    upstream.clean()
    boards = [request.path for request in upstream.replica.requests if "/leaderboard/kernel/1/" in request.path]
    assert [path.rpartition("/")[2] for path in boards] == ["..%2Fx.B200"]


def test_a_run_that_is_killed_goes_on_where_it_was(upstream: Upstream, tmp_path: Path) -> None:
    script = """
import sys
from datetime import datetime
from pathlib import Path
from assets.sol_execbench.pull import pull
from pipelines.sol_api import SolApi
from warehouse.raw import RawStore
pull(SolApi(sys.argv[1], 0.02), RawStore(Path(sys.argv[2])), None, datetime.fromisoformat(sys.argv[3]))
"""
    words = [sys.executable, "-c", script, upstream.replica.sol_url, str(tmp_path / "raw"), NIGHT.isoformat()]
    process = subprocess.Popen(words)
    deadline = time.monotonic() + _DEADLINE
    while len(Walks.of(upstream.raw).kernels) < 5 and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = sorted(Walks.of(upstream.raw).kernels)
    assert 5 <= len(done) < 14
    collection = upstream.clean(NIGHT + timedelta(hours=1))
    assert asked(upstream.replica)[0] == "kernels"
    assert walked(upstream.replica) == [number for number in range(1, 15) if number not in done]
    assert len(collection.files) == 1 + 14 * 2
    upstream.clean(NIGHT + timedelta(hours=2))
    assert asked(upstream.replica) == ["kernels"]


def test_a_walk_that_died_before_midnight_is_finished_after_it(upstream: Upstream) -> None:
    upstream.clean()
    late = datetime(2026, 12, 1, 23, 59, tzinfo=UTC)
    for number in (4, 11):
        changes.submissions_arrive(upstream.folder, number)
    seventh = sorted(kernel.id for kernel in _due(Walks.of(upstream.raw), late) if kernel.id not in (4, 11))
    upstream.replica.faults.add("kernels/11$", refused(), times=None)
    stopped = upstream.pull(late, retries=0)
    assert "the next ingest goes on there" in stopped.stale[0]
    first = walked(upstream.replica)
    upstream.replica.faults.clear()
    upstream.clean(late + timedelta(minutes=10))
    second = walked(upstream.replica)
    assert second[0] == 11
    # What was walked before midnight is not asked for again, and no other night's seventh begins.
    assert sorted({*first, *second} - {4, 11}) == seventh
    assert set(first) & set(second) <= {11}


def test_half_a_surrogate_pair_is_asked_for_nowhere(upstream: Upstream) -> None:
    row = submissions(1, 1)[0] | {"gpu_type": "\ud800", "evaluation_stack_version": "\udfff", "status": "\ud8ff"}
    put_submissions(upstream.folder, 1, [row])
    collection = upstream.pull()
    assert (collection.stale, collection.unreadable) == ((), ())
    assert "submissions/1.json" in {file.locator for file in collection.files}
