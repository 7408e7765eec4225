"""Dagster's pages as an operator uses them, in a real browser, on a home that is filled from the replica.

`KERNELMART_SCREENSHOTS` names a folder for pictures of the graph and of a run, as the documentation has them.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from replica import faults
from replica.corpus import write_corpus
from replica.server import Replica
from tests.commands import as_json
from tests.system.development import asked, running

_RUNS = "query { runsOrError(limit: 20) { ... on Runs { results { runId status jobName parentRunId } } } }"
_PATIENCE_SECONDS = 240
Found = TypeVar("Found")


@dataclass(frozen=True)
class Pages:
    """Dagster's pages, a browser in front of them, the home behind them, and what it pulls from."""

    url: str
    browser: Browser
    home: Path
    replica: Replica

    def open(self, path: str) -> Page:
        page = self.browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(_PATIENCE_SECONDS * 1000)
        page.goto(f"{self.url}/{path}")
        return page

    def runs(self) -> list[dict[str, Any]]:
        return list(asked(self.url, _RUNS)["runsOrError"]["results"])

    def run(self, run_id: str) -> dict[str, Any]:
        return next(run for run in self.runs() if run["runId"] == run_id)


@pytest.fixture
def pages(chromium: Path, tmp_path: Path) -> Iterator[Pages]:
    home = tmp_path / "home"
    corpus = write_corpus(tmp_path / "corpus", seed=1, scale=0.001)
    with Replica(corpus.folder) as replica, running(home, replica) as url, sync_playwright() as playwright:
        # Its own sandbox is not to be had where tests run as root.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--lang=en"])
        yield Pages(url, browser, home, replica)
        browser.close()


def test_an_operator_sees_the_graph_runs_the_job_reads_a_page_and_has_what_was_killed_run_again(pages: Pages) -> None:
    # One after the other on one home: to start Dagster takes longer than all of it.
    the_graph_shows_all_groups(pages)
    the_nightly_job_runs_green_from_the_launchpad(pages)
    an_asset_s_page_shows_its_metadata(pages)
    a_run_whose_process_is_killed_is_noticed_and_run_again(pages)


def the_graph_shows_all_groups(pages: Pages) -> None:
    page = pages.open("asset-groups")
    for group in ("kernelbot", "sol_execbench", "warehouse"):
        page.get_by_text(group, exact=True).first.wait_for()
    _picture(page, "graph")


def the_nightly_job_runs_green_from_the_launchpad(pages: Pages) -> None:
    green_run = _launched(pages)
    _eventually(lambda: pages.run(green_run)["status"] in ("SUCCESS", "FAILURE"))
    assert pages.run(green_run) == {
        "runId": green_run, "status": "SUCCESS", "jobName": "nightly", "parentRunId": None
    }  # fmt: skip
    page = pages.open(f"runs/{green_run}")
    page.get_by_text("Success", exact=True).first.wait_for()
    _picture(page, "run")
    state = as_json(pages.home, "status")
    assert state["rows"]["runs"] > 100
    assert {source: seen["stale"] for source, seen in state["sources"].items()} == {
        "gpumode-kernelbot": False, "sol-execbench": False
    }  # fmt: skip


def an_asset_s_page_shows_its_metadata(pages: Pages) -> None:
    page = pages.open("assets/warehouse/snapshot")
    snapshot_id = as_json(pages.home, "status")["snapshot"]["snapshot_id"]
    page.get_by_text(snapshot_id).first.wait_for()
    for name in ("record_progress", "runs_per_board", "changes", "rejects_rows", "drift_rows"):
        page.get_by_text(name, exact=True).first.wait_for()
    page.get_by_text("[Show Markdown]").first.click()
    # The picture itself is on the page, and a browser can draw it.
    drawn = page.locator("img[src^='data:image/png']").first
    drawn.wait_for()
    assert drawn.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    _picture(page, "asset")
    page = pages.open("assets/kernelbot/runs")
    page.get_by_text("comparison_key").first.wait_for()


def a_run_whose_process_is_killed_is_noticed_and_run_again(pages: Pages) -> None:
    # It waits for the Hub until it is killed.
    pages.replica.faults.add("/api/datasets/", faults.slow_drip(pause=1), times=None)
    run_id = _launched(pages)
    os.kill(_eventually(lambda: _holder(pages.home)), signal.SIGKILL)
    pages.replica.faults.clear()
    _eventually(lambda: pages.run(run_id)["status"] == "FAILURE")
    again = _eventually(lambda: [run for run in pages.runs() if run["parentRunId"] == run_id])
    _eventually(lambda: pages.run(again[0]["runId"])["status"] in ("SUCCESS", "FAILURE"))
    assert pages.run(again[0]["runId"])["status"] == "SUCCESS"


def _launched(pages: Pages) -> str:
    """Id of a run of the nightly job, started by a click."""
    page = pages.open("locations/kernelmart/jobs/nightly/playground")
    page.get_by_role("button", name="Launch run").click()
    page.wait_for_url("**/runs/*")
    return page.url.rpartition("/")[2]


def _holder(home: Path) -> int | None:
    """Process that holds the home."""
    try:
        return int(json.loads((home / "lock.json").read_text())["process"])
    except (OSError, ValueError):
        return None


def _eventually(find: Callable[[], Found | None]) -> Found:
    """What there is once there is something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def _picture(page: Page, name: str) -> None:
    if folder := os.environ.get("KERNELMART_SCREENSHOTS"):
        # The graph lays itself out after its words are there.
        page.wait_for_timeout(3_000)
        page.screenshot(path=Path(folder) / f"{name}.png")
