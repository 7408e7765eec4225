"""The dataset is pulled from the Hub once: as few bytes as the tables need, and what they say is what it says."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from assets.kernelbot.build import build_tables, read_files
from assets.kernelbot.hub_files import chunks
from assets.kernelbot.pull import pull
from assets.kernelbot.read import SubmissionsFile, is_bulk
from pipelines.hub import HubClient
from replica import faults
from replica.changes import file_changes
from replica.corpus import write_corpus
from replica.server import Replica
from tests.hub_folder import (
    SOURCE,
    all_read,
    asked_spans,
    contents,
    hurried,
    needed_bytes,
    pulled,
    small_dataset,
)
from tests.kernelbot_folder import Row, case_row, raw_file, score_row, write
from warehouse.errors import UnreadableError
from warehouse.parts import PartStore
from warehouse.raw import Collection, RawFile, RawStore


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, seed=1, scale=0.001, code=True)
    return folder


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return small_dataset(tmp_path / "upstream")


@pytest.fixture
def replica(dataset: Path) -> Iterator[Replica]:
    with Replica(dataset.parent) as served:
        yield served


@pytest.fixture
def raw(tmp_path: Path) -> RawStore:
    return RawStore(tmp_path / "raw")


def by_name(collection: Collection) -> dict[str, RawFile]:
    return {file.locator: file for file in collection.files}


# --- a whole corpus --------------------------------------------------------------------------------------------


def test_every_file_of_a_corpus_says_the_same_from_its_ranges_as_whole(corpus: Path, tmp_path: Path) -> None:
    raw = RawStore(tmp_path / "raw")
    with Replica(corpus) as replica:
        collection = pulled(replica, raw)
        requests = replica.requests
    paths = {path.name: path for path in (corpus / "kernelbot").glob("*.parquet")}
    files = by_name(collection)
    assert files.keys() == paths.keys()
    assert len(files) >= 11
    assert sum(not file.verified for file in files.values()) >= 9
    wanted = footers = 0
    for name, file in files.items():
        whole = raw_file(paths[name])
        assert (file.content_digest, file.size_bytes) == (whole.content_digest, whole.size_bytes)
        assert all_read(file) == all_read(whole), name
        chunk_bytes, footer = needed_bytes(paths[name])
        wanted, footers = wanted + chunk_bytes, footers + footer
        found = chunks(SubmissionsFile(whole).metadata, whole.size_bytes)
        never = [span for leaf, places in found.items() if is_bulk(leaf) for span in places]
        # The chunks of a file without rows all begin at its first byte.
        if not file.verified and SubmissionsFile(whole).rows_read:
            for first, last in asked_spans(requests, file):
                assert not any(start < last and first < end for start, end in never), name
    assert sum(request.bytes_sent for request in contents(requests)) <= 1.1 * wanted + footers

    from_ranges = normalised(tmp_path / "ranges", collection.files)
    whole_files = tuple(replace(raw_file(path), locator=name) for name, path in paths.items())
    from_whole = normalised(tmp_path / "whole", whole_files)
    origins = [(row["locator"], row["verified"], row["revision"]) for row in from_ranges["source_files"]]
    assert sorted(origins) == sorted((name, file.verified, collection.revision) for name, file in files.items())
    for tables in (from_ranges, from_whole):
        for row in (*tables["source_files"], *tables["drift"]):
            for name in ("verified", "revision", "fetched_at", "first_seen_at"):
                row.pop(name, None)
    assert {name: sorted(map(repr, rows)) for name, rows in from_ranges.items()} == {
        name: sorted(map(repr, rows)) for name, rows in from_whole.items()
    }


def normalised(folder: Path, files: tuple[RawFile, ...]) -> dict[str, list[Row]]:
    """The rows of every table that is made of files."""
    store = PartStore(folder)
    (folder / "temporary").mkdir(parents=True)
    made = build_tables(store, read_files(store, Collection(SOURCE, files), None), folder / "temporary")
    return {
        table: [row for part in parts for row in pq.read_table(store.root / part, partitioning=None).to_pylist()]
        for table, parts in made.items()
    }


# --- what is fetched, and what is not --------------------------------------------------------------------------


def test_only_the_bytes_of_the_leaves_that_the_tables_need_are_fetched(
    replica: Replica, raw: RawStore, dataset: Path
) -> None:
    collection = pulled(replica, raw)
    assert [(file.locator, file.verified) for file in collection.files] == [
        ("leaderboards.parquet", False), ("submissions.parquet", False), ("trimul_submissions.parquet", False)
    ]  # fmt: skip
    for file in collection.files:
        wanted, footer = needed_bytes(dataset / file.locator)
        fetched = sum(end - start for start, end in asked_spans(replica.requests, file))
        assert fetched == sum(part.length for part in file.ranges)
        assert wanted + footer <= fetched <= 1.1 * wanted + footer
        assert fetched < file.size_bytes / 2
        assert (file.revision, file.etag) == (replica.revision, file.content_digest.removeprefix("sha256:"))
        record = raw.record(file.content_digest)
        assert record is not None
        assert record.ranges == file.ranges
        content = (dataset / file.locator).read_bytes()
        for part in file.ranges:
            kept = raw.path(part.digest).read_bytes()
            assert kept == content[part.offset : part.offset + part.length]
            assert part.digest == "sha256:" + hashlib.sha256(kept).hexdigest()


def test_a_night_without_changes_is_one_question(replica: Replica, raw: RawStore) -> None:
    first = pulled(replica, raw)
    replica.forget_requests()
    assert pulled(replica, raw) == first
    assert [request.path for request in replica.requests] == ["/api/datasets/GPUMODE/kernelbot-data/revision/main"]


def test_of_one_changed_file_only_that_is_fetched(replica: Replica, raw: RawStore, dataset: Path) -> None:
    before = by_name(pulled(replica, raw))
    file_changes(dataset.parent, "trimul_submissions.parquet")
    replica.forget_requests()
    after = by_name(pulled(replica, raw))
    changed = after["trimul_submissions.parquet"]
    assert changed.content_digest == raw_file(dataset / changed.locator).content_digest
    assert {request.path for request in contents(replica.requests)} == {f"/lfs/{changed.etag}"}
    for name in ("submissions.parquet", "leaderboards.parquet"):
        assert after[name] == replace(before[name], revision=replica.revision)


def test_a_changed_card_costs_no_bytes_of_data(replica: Replica, raw: RawStore, dataset: Path) -> None:
    before = pulled(replica, raw)
    (dataset / "README.md").write_text("---\nlicense: other\n---\n")
    replica.forget_requests()
    after = pulled(replica, raw)
    assert contents(replica.requests) == []
    assert after.revision == replica.revision != before.revision
    assert after.inputs() == before.inputs()


def test_all_files_are_of_the_commit_that_main_was_at_first(replica: Replica, raw: RawStore, dataset: Path) -> None:
    wanted = {path.name: raw_file(path).content_digest for path in dataset.glob("*.parquet")}
    at_first = replica.revision
    moves = faults.meanwhile(lambda: file_changes(dataset.parent, "submissions.parquet"))
    replica.faults.add("GET .*/tree/", moves)
    collection = pulled(replica, raw)
    assert replica.revision != at_first == collection.revision
    assert {file.locator: file.content_digest for file in collection.files} == wanted
    assert collection.unreadable == ()
    assert by_name(pulled(replica, raw))["submissions.parquet"].content_digest != wanted["submissions.parquet"]


def test_a_file_that_only_the_list_of_files_has_is_found(replica: Replica, raw: RawStore, dataset: Path) -> None:
    write(dataset, "helion_b200_nebius_submissions", [score_row(900)])  # which the replica's card leaves out
    write(dataset / "later", "new", [score_row(901)])
    assert {"helion_b200_nebius_submissions.parquet", "later/new.parquet"} < by_name(pulled(replica, raw)).keys()


def test_a_list_of_files_on_several_pages_is_read_to_its_end(dataset: Path, raw: RawStore) -> None:
    with Replica(dataset.parent, page_size=2) as replica:
        assert len(pulled(replica, raw).files) == 3
        assert sum("/tree/" in request.path for request in replica.requests) == 3


def test_a_file_that_only_the_card_knows_as_data_is_found_and_checked_by_gits_digest(
    replica: Replica, raw: RawStore, dataset: Path
) -> None:
    write(dataset, "extra", [score_row(902)]).rename(dataset / "extra")
    (dataset / "README.md").write_text("---\nconfigs:\n- config_name: x\n  data_files: ex*\n---\n")
    extra = by_name(pulled(replica, raw))["extra"]
    assert (extra.verified, extra.content_digest) == (True, raw_file(dataset / "extra").content_digest)
    replica.forget_requests()
    (dataset / "README.md").write_text("---\nconfigs:\n- data_files: {train: [{path: extra}]}\n---\n")
    assert by_name(pulled(replica, raw))["extra"].content_digest == extra.content_digest
    assert not [request for request in replica.requests if request.path.endswith("/extra")]
    replica.faults.add("/resolve/[^/]*/extra", faults.wrong_bytes(), times=None)
    write(dataset, "extra", [score_row(903)]).rename(dataset / "extra")
    assert pulled(replica, raw).unreadable == (
        ("extra", "what the Hub sent has not the digest that the Hub lists; ingest again later"),
    )


def test_rows_that_only_their_content_tells_apart_bring_the_whole_result(
    replica: Replica, raw: RawStore, dataset: Path
) -> None:
    noise = "".join(f"{number * 7919:x}" for number in range(9000))
    results = [{"check": "pass", "test.0.message": f"{noise[i * 500 : i * 500 + 400]}"} for i in range(60)]
    rows = [case_row(i, 7, code=noise, run_result=results[i]) for i in range(60)]
    write(dataset, "successful_submissions", rows)
    by_run = by_name(pulled(replica, raw))["successful_submissions.parquet"]
    write(dataset, "successful_submissions", [*rows, case_row(3, 7, code=noise, run_result=results[9])])
    by_content = by_name(pulled(replica, raw))["successful_submissions.parquet"]
    assert sum(part.length for part in by_content.ranges) > 2 * sum(part.length for part in by_run.ranges)
    assert all_read(by_content) == all_read(raw_file(dataset / by_content.locator))


def test_what_a_folder_brought_is_not_fetched(replica: Replica, raw: RawStore, dataset: Path) -> None:
    raw.remember(raw.collect_folder(SOURCE, dataset, ["*.parquet"]))
    collection = pulled(replica, raw)
    assert contents(replica.requests) == []
    assert all(file.verified and file.revision == replica.revision for file in collection.files)


def test_a_reader_that_needs_more_fetches_only_what_is_lacking(replica: Replica, raw: RawStore) -> None:
    file = by_name(pulled(replica, raw))["submissions.parquet"]
    largest = max(file.ranges[:-1], key=lambda part: part.length)
    earlier = replace(file, reader="kernelbot/0", ranges=tuple(part for part in file.ranges if part != largest))
    raw.keep_record(earlier)
    others = [other for other in pulled(replica, raw).files if other.locator != file.locator]
    raw.remember(Collection(SOURCE, (*others, earlier)))
    raw.keep_record(earlier)
    replica.forget_requests()
    again = by_name(pulled(replica, raw))[file.locator]
    assert asked_spans(replica.requests, file) == [(largest.offset, largest.offset + largest.length)]
    assert again.ranges == file.ranges
    assert len(contents(replica.requests)) == 1


def test_a_damaged_range_is_fetched_again(replica: Replica, raw: RawStore, dataset: Path) -> None:
    file = pulled(replica, raw).files[1]
    path = raw.path(file.ranges[0].digest)
    path.write_bytes(b"x" * path.stat().st_size)
    again = pull(HubClient(replica.hub_endpoint, patience=hurried()), raw, raw.last_good(SOURCE)).files[1]
    assert again.ranges == file.ranges
    again.require_whole()
    assert all_read(again) == all_read(raw_file(dataset / file.locator))


# --- whole files -----------------------------------------------------------------------------------------------


def test_whole_files_are_downloaded_once_and_checked(replica: Replica, raw: RawStore, dataset: Path) -> None:
    collection = pulled(replica, raw, whole=True)
    for file in collection.files:
        assert file.verified
        assert file.path.read_bytes() == (dataset / file.locator).read_bytes()
        file.require_whole()
    assert not (raw.root / "downloads").exists()
    replica.forget_requests()
    assert pulled(replica, raw, whole=True) == collection
    assert len(replica.requests) == 1
    assert pulled(replica, raw) == collection


def test_a_download_that_is_cut_goes_on_where_it_was_cut(
    replica: Replica, raw: RawStore, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    # The client writes so much at a time, and what was not written is lost.
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    replica.faults.add("GET /lfs/", faults.reset_midway())
    collection = pulled(replica, raw, whole=True)
    assert (collection.unreadable, len(collection.files)) == ((), 3)
    first = collection.files[0]
    cut, rest = [request for request in contents(replica.requests) if request.path.endswith(first.etag or "")]
    assert (cut.range, cut.status, cut.bytes_sent) == (None, 200, first.size_bytes // 2)
    assert rest.status == 206
    assert rest.bytes_sent < first.size_bytes * 0.7
    assert first.path.read_bytes() == (dataset / first.locator).read_bytes()


def test_a_download_with_wrong_bytes_is_not_kept(replica: Replica, raw: RawStore, dataset: Path) -> None:
    replica.faults.add("GET /lfs/", faults.wrong_bytes(), times=1)
    assert pulled(replica, raw, whole=True).unreadable == ()
    shutil.rmtree(raw.root)
    replica.faults.add("GET /lfs/", faults.wrong_bytes(), times=None)
    collection = pull(HubClient(replica.hub_endpoint, patience=hurried()), raw, None, whole=True)
    why = "what the Hub sent has not the digest that the Hub lists; ingest again later"
    assert collection.unreadable == tuple((path.name, why) for path in sorted(dataset.glob("*.parquet")))
    assert collection.files == ()
    assert list((raw.root / "objects").glob("*")) == []
    assert not (raw.root / "downloads").exists()


# --- tokens ----------------------------------------------------------------------------------------------------


def test_the_token_goes_to_the_hub_alone_and_is_nowhere_to_be_read(
    dataset: Path, raw: RawStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hf_" + "q7" * 17
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HF_TOKEN", secret)
    with Replica(dataset.parent, token=secret) as hub, Replica(dataset.parent) as elsewhere:
        digest = raw_file(dataset / "submissions.parquet").content_digest.removeprefix("sha256:")
        assert elsewhere.revision
        hub.faults.add(
            "GET /datasets/.*/submissions.parquet",
            faults.redirect(f"{elsewhere.hub_endpoint}/lfs/{digest}"),
            times=None,
        )
        collection = pulled(hub, raw)
        assert len(collection.files) == 3
        assert contents(elsewhere.requests)
        assert all("authorization" not in request.headers for request in elsewhere.requests)
        asked = [request for request in hub.requests if not request.path.startswith("/lfs/")]
        assert {request.headers["authorization"] for request in asked} == {f"Bearer {secret}"}
        hub.faults.add(".", faults.server_error(), times=None)
        stale = pulled(hub, raw)
        (line,) = stale.stale
        for wrong in ("hf_wrong" + "x" * 26, None):
            if wrong is None:
                monkeypatch.delenv("HF_TOKEN")
            else:
                monkeypatch.setenv("HF_TOKEN", wrong)
            hub.faults.clear()
            with pytest.raises(UnreadableError, match=r"set HF_TOKEN|HF_ENDPOINT and HF_TOKEN|answers 401") as raised:
                pull(HubClient(hub.hub_endpoint, patience=hurried()), raw, None)
            assert "\n" not in str(raised.value)
            assert wrong is None or wrong not in str(raised.value)
    kept = b"".join(path.read_bytes() for path in raw.root.rglob("*.json"))
    assert secret not in line + caplog.text + repr(stale.as_record())
    assert secret.encode() not in kept


def test_a_token_that_lies_in_the_users_folder_is_not_used(
    replica: Replica, raw: RawStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    (tmp_path / "token").write_text("hf_stored")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    pulled(replica, raw)
    assert all("authorization" not in request.headers for request in replica.requests)


@pytest.mark.parametrize("endpoint", ["http://huggingface.co", "http://192.0.2.7:8000", "ftp://127.0.0.1"])
def test_an_endpoint_without_https_elsewhere_is_refused(endpoint: str) -> None:
    with pytest.raises(UnreadableError, match="HF_ENDPOINT must begin with https://"):
        HubClient(endpoint)
