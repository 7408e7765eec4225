"""Whole ingests that pull from both services: a replica of them serves a generated corpus over real HTTP."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.ingest import Outcome, ingest
from pipelines.resources import Request
from replica.faults import web_page
from replica.server import Replica
from tests.commands import printed, refused, run
from tests.conftest import SmallHome
from warehouse import snapshots
from warehouse.errors import KernelmartError
from warehouse.home import Home

HUB = "^GET /api/datasets/"
LISTING = "/api/kernels$"
CHANGED = "trimul_submissions.parquet"


@pytest.fixture
def upstream(small_home: SmallHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    """Both services, with the small corpus."""
    shutil.copytree(small_home.corpus.folder, tmp_path / "served")
    with Replica(tmp_path / "served") as replica:
        monkeypatch.setenv("HF_ENDPOINT", replica.hub_endpoint)
        monkeypatch.setenv("KERNELMART_SOL_URL", replica.sol_url)
        monkeypatch.setenv("KERNELMART_SOL_INTERVAL_MS", "0")
        yield replica


def pull(home: Path, **asked: Any) -> Outcome:
    return ingest(Home(home), Request(**asked))


def exported_again(served: Path) -> None:
    """A data file comes with other user names, and with every row twice under new numbers."""
    path = served / "kernelbot" / CHANGED
    table = pq.read_table(path)

    def with_values(column: str, values: list[Any]) -> pa.Table:
        place = table.schema.get_field_index(column)
        return table.set_column(place, column, pa.array(values, table.schema.field(place).type))

    ids = [number + 10_000_000 for number in table["submission_id"].to_pylist()]
    again = with_values("submission_id", ids)
    pq.write_table(pa.concat_tables([with_values("user_name", ["somebody"] * table.num_rows), again]), path)


def rows(home: Path, text: str) -> list[Any]:
    with snapshots.required(Home(home)).open() as connection:
        return connection.execute(text).fetchall()


def content_digest(home: Path) -> str:
    return str(snapshots.required(Home(home)).manifest["content_digest"])


def test_what_is_pulled_makes_the_same_tables_as_saved_files(
    upstream: Replica, small_home: SmallHome, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    outcome = pull(home)
    assert outcome.published
    assert outcome.stale == []
    for text in (
        # Where a page was cut is all that a pull decides.
        "select * exclude (content_digest, locator, item) from runs order by run_id",
        "from ranks order by policy, run_id",
        "from standings order by all",
        "from implementations order by implementation_digest",
        "from cases order by all",
        # Answers about kernels that are not listed lie in the folder, and nobody asks for them.
        "select reason, count(*) from rejects where reason <> 'NO_PROBLEM' group by all order by all",
    ):
        assert rows(home, text) == rows(small_home.home, text), text
    files = rows(home, "select source, verified, revision is not null, count(*) from source_files group by all")
    assert {row[:3] for row in files} == {
        ("gpumode-kernelbot", True, True),
        ("gpumode-kernelbot", False, True),
        ("sol-execbench", True, False),
    }
    assert rows(home, "select distinct revision from source_files where revision is not null") == [(upstream.revision,)]


def test_nights_fetch_what_changed_and_replays_fetch_nothing(
    upstream: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("KERNELMART_PUBLISH_URL", (tmp_path / "store").as_uri())
    first = pull(home)
    digest = content_digest(home)
    assert json.loads((tmp_path / "store" / "snapshots" / "latest.json").read_text())["path"] == first.snapshot_id

    upstream.forget_requests()
    assert pull(home) == Outcome(first.snapshot_id, False, [], [], [])
    # A probe of the revision, and the listing of kernels: all were walked today.
    assert [request.path.rpartition("/")[2] for request in upstream.requests] == ["main", "kernels"]

    monkeypatch.setattr("assets.kernelbot.normalise.VERSION", "another one")
    monkeypatch.setattr("assets.kernelbot.build.VERSION", "another one")
    upstream.forget_requests()
    assert pull(home).snapshot_id == first.snapshot_id
    assert len(upstream.requests) == 2
    assert len({path.name for path in (home / "tables" / "gpumode-kernelbot" / "tables").iterdir()}) == 2

    upstream.forget_requests()
    exported_again(tmp_path / "served")
    second = pull(home)
    assert second.published
    fetched = {request.path for request in upstream.requests if request.bytes_sent and "/lfs/" in request.path}
    assert len(fetched) == 1
    store = json.loads((tmp_path / "store" / "snapshots" / "latest.json").read_text())
    assert store["path"] == second.snapshot_id

    upstream.forget_requests()
    shutil.rmtree(home / "tables" / "gpumode-kernelbot")
    checked_at = Home(home).read_status()["checked_at"]
    assert pull(home, replay=first.snapshot_id).published
    assert content_digest(home) == digest
    assert upstream.requests == []
    assert Home(home).read_status()["checked_at"] == checked_at

    locator, lost = rows(home, "select locator, content_digest from source_files where verified order by all")[0]
    (home / "raw" / "objects" / lost[7:9] / lost[7:]).unlink()
    with pytest.raises(KernelmartError, match=f"cannot be replayed: the raw store lacks .*{locator}"):
        pull(home, replay=first.snapshot_id)


def test_a_service_that_answers_with_a_web_page_leaves_its_last_good_rows(upstream: Replica, tmp_path: Path) -> None:
    home = tmp_path / "home"
    upstream.faults.add(HUB, web_page(), times=None)
    with pytest.raises(KernelmartError, match=r"^gpumode-kernelbot: the Hub"):
        pull(home)
    assert snapshots.latest(Home(home)) is None
    upstream.faults.clear()
    first = pull(home)
    for fault, source in ((HUB, "gpumode-kernelbot"), (LISTING, "sol-execbench")):
        upstream.faults.add(fault, web_page(), times=None)
        outcome = pull(home)
        assert [line.partition(":")[0] for line in outcome.stale] == [source]
        assert rows(home, "select source from sources where stale") == [(source,)]
        runs = rows(home, "select count(*) from runs")
        assert runs == rows_of(home, first.snapshot_id)
        upstream.faults.clear()


def rows_of(home: Path, snapshot_id: str) -> list[Any]:
    with snapshots.named(Home(home), snapshot_id).open() as connection:
        return connection.execute("select count(*) from runs").fetchall()


def test_what_was_rolled_back_is_withheld_until_it_is_forced(upstream: Replica, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = pull(home, sources=["gpumode-kernelbot"])
    exported_again(tmp_path / "served")
    second = pull(home, sources=["gpumode-kernelbot"])
    assert first.snapshot_id in printed(home, "snapshots", "rollback", "--reason", "wrong board")
    for down in (False, False, True):
        # What is left of a service that cannot be asked are the files of what was withdrawn.
        if down:
            upstream.faults.add(HUB, web_page(), times=None)
        outcome = pull(home, sources=["gpumode-kernelbot"])
        assert (outcome.published, bool(outcome.stale)) == (False, down)
        assert outcome.snapshot_id == first.snapshot_id
        assert ["wrong board" in line for line in outcome.withheld] == [True]
        assert "wrong board" in run(home, "status").stdout
    upstream.faults.clear()
    assert content_digest(home) != snapshots.named(Home(home), second.snapshot_id).manifest["content_digest"]
    forced = pull(home, sources=["gpumode-kernelbot"], force=True)
    assert forced.published
    assert content_digest(home) == snapshots.named(Home(home), second.snapshot_id).manifest["content_digest"]
    assert "no sound snapshot" not in refused(home, "ingest", "--replay", "nothing-of-that-name")
