"""Whatever goes wrong at the Hub, a pull recovers or says so in one line; store and last good files stay whole."""

from __future__ import annotations

import logging
import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from assets.kernelbot.pull import pull
from pipelines.hub import HubClient
from pipelines.hub_session import Patience
from replica import faults
from replica.answers import Answer
from replica.changes import file_changes
from replica.faults import Fault
from replica.proxy import RefusingProxy
from replica.server import Replica
from tests.hub_folder import SOURCE, all_read, contents, hurried, pulled, small_dataset
from tests.kernelbot_folder import raw_file
from warehouse.errors import HomeError, UnreadableError
from warehouse.raw import Collection, RawStore
from warehouse.upkeep import damage

FILES = "GET /lfs/"
LISTING = "GET .*/tree/"
REVISION = "GET .*/revision/main"


@dataclass
class Upstream:
    """A dataset that was pulled once, and has changed since."""

    replica: Replica
    dataset: Path
    raw: RawStore
    before: Collection

    def pull(self, patience: Patience | None = None) -> Collection:
        """What a pull gives now; whatever becomes of it, the store and the last good files are as they should be."""
        try:
            hub = HubClient(self.replica.hub_endpoint, patience=patience or hurried())
            return pull(hub, self.raw, self.raw.last_good(SOURCE))
        finally:
            assert list(damage(self.raw)) == []
            assert self.raw.last_good(SOURCE) == self.before
            for file in self.before.files:
                file.require_whole()


@pytest.fixture(scope="module")
def pulled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pulled")
    dataset = small_dataset(folder / "upstream")
    with Replica(dataset.parent) as replica:
        pulled(replica, RawStore(folder / "raw"))
    return folder


@pytest.fixture
def upstream(pulled_once: Path, tmp_path: Path) -> Iterator[Upstream]:
    folder = tmp_path / "copy"
    shutil.copytree(pulled_once, folder)
    raw = RawStore(folder / "raw")
    before = raw.last_good(SOURCE)
    assert before is not None
    file_changes(folder / "upstream", "submissions.parquet")
    with Replica(folder / "upstream") as replica:
        yield Upstream(replica, folder / "upstream" / "kernelbot", raw, before)


def is_new(upstream: Upstream, collection: Collection) -> bool:
    """Whether a collection is what the Hub has now."""
    return (
        (collection.stale, collection.unreadable) == ((), ())
        and collection.revision == upstream.replica.revision
        and all(all_read(file) == all_read(raw_file(upstream.dataset / file.locator)) for file in collection.files)
    )


SLOW = faults.slow_drip(0.02)
SLOW_HEADERS = faults.endless_headers(0.02)


def patience_for(fault: Fault) -> Patience:
    limits = {"window": 0.25} if fault is SLOW else {"headers": 0.25} if fault is SLOW_HEADERS else {}
    return hurried(**limits)


def zeros(answer: Answer) -> Answer:
    """The right length and nothing else right."""
    return replace(answer, content=bytes(answer.size))


def encoded(answer: Answer) -> Answer:
    """Bytes that are said to be compressed."""
    return answer.with_headers(Content_Encoding="gzip")


# --- what passes ------------------------------------------------------------------------------------------------

PASSING: dict[str, tuple[str, Fault]] = {
    "refused": (REVISION, faults.refused()),
    "refused a file": (FILES, faults.refused()),
    "a list reset in the midst": (LISTING, faults.reset_midway()),
    "a file reset in the midst": (FILES, faults.reset_midway()),
    "a list ended too early": (LISTING, faults.short_body()),
    "a file ended too early": (FILES, faults.short_body()),
    "a slow list": (LISTING, SLOW),
    "a slow file": (FILES, SLOW),
    "slow headers of a list": (LISTING, SLOW_HEADERS),
    "slow headers of a file": (FILES, SLOW_HEADERS),
    "429": (FILES, faults.too_many_requests()),
    "429 with seconds": (LISTING, faults.too_many_requests(0)),
    "429 with a date": (REVISION, faults.too_many_requests(0, as_date=True)),
    "500": (LISTING, faults.server_error()),
    "503 of a file": (FILES, faults.server_error(503)),
}


@pytest.mark.parametrize(("where", "fault"), PASSING.values(), ids=PASSING)
def test_what_passes_is_recovered_from(upstream: Upstream, where: str, fault: Fault) -> None:
    rule = upstream.replica.faults.add(where, fault, times=2, skip=2 if where == FILES else 0)
    assert is_new(upstream, upstream.pull(patience_for(fault)))
    assert rule.used == 2


@pytest.mark.parametrize("fault", [zeros, faults.wrong_bytes(), faults.truncated()], ids=["zeros", "a byte", "length"])
def test_a_footer_that_came_wrong_is_fetched_anew(upstream: Upstream, fault: Fault) -> None:
    rule = upstream.replica.faults.add(FILES, fault)
    assert is_new(upstream, upstream.pull())
    assert rule.used == 1


def test_columns_that_came_wrong_are_fetched_anew(upstream: Upstream) -> None:
    upstream.replica.faults.add(FILES, zeros, skip=3)
    assert is_new(upstream, upstream.pull())


def test_a_cut_range_goes_on_where_it_was_cut(upstream: Upstream) -> None:
    upstream.replica.faults.add(FILES, faults.reset_midway(), skip=1)
    assert is_new(upstream, upstream.pull())
    _, cut, rest = contents(upstream.replica.requests)[:3]
    first, last = (int(text) for text in (cut.range or "").removeprefix("bytes=").split("-"))
    assert cut.bytes_sent == (last + 1 - first) // 2
    assert rest.range == f"bytes={first + cut.bytes_sent}-{last}"


# --- what does not pass -----------------------------------------------------------------------------------------

LASTING_IN_FILES: dict[str, tuple[Fault, str]] = {
    "refused": (faults.refused(), "the Hub breaks off its answer, 5 times in a row; ingest again later"),
    "ended too early": (
        faults.short_body(10**6),
        "the Hub breaks off its answer, 5 times in a row; ingest again later",
    ),
    "slow": (SLOW, "the Hub answers too slowly, "),
    "429": (faults.too_many_requests(), "the Hub answers 429 Too Many Requests, 5 times in a row; ingest again later"),
    "429 for a day": (faults.too_many_requests(86_400), "and asks to be left alone for 86400 s; ingest again after"),
    "500": (faults.server_error(), "the Hub answers 500 Internal Server Error, 5 times in a row; ingest again later"),
    "zeros": (zeros, "; ingest again later"),
    "a page": (faults.web_page(), "an HTML page stands in place of the file; fetch it again"),
    "a pointer": (faults.pointer_file(), "a Git LFS pointer stands in place of the file; fetch the file itself"),
    "encoded": (encoded, "the Hub sends its answer encoded, which it was asked not to; check the proxy"),
    "elsewhere": (faults.redirect("http://192.0.2.7/x"), "the Hub redirects to an address without HTTPS; ingest again"),
    "in a circle": (faults.redirect("/lfs/0"), "the Hub redirects in a circle; ingest again later"),
    "gone": (lambda _: Answer(404), "the Hub answers 404 Not Found; ingest again later"),
    "too short": (lambda _: Answer(416), "the Hub's file is shorter than listed; ingest again later"),
}


@pytest.mark.parametrize(("fault", "why"), LASTING_IN_FILES.values(), ids=LASTING_IN_FILES)
def test_a_file_that_cannot_be_had_is_named_with_the_reason(upstream: Upstream, fault: Fault, why: str) -> None:
    upstream.replica.faults.add(FILES, fault, times=None)
    collection = upstream.pull(patience_for(fault))
    ((locator, reason),) = collection.unreadable
    assert locator == "submissions.parquet"
    assert why in reason
    assert "\n" not in reason
    assert "127.0.0.1" not in reason
    assert {file.locator for file in collection.files} == {"leaderboards.parquet", "trimul_submissions.parquet"}
    used = collection.with_last_good(lambda _: None, upstream.raw.last_good(SOURCE))
    assert [line.partition(": ")[0] for line in used.stale] == ["submissions.parquet"]
    assert sorted(file.locator for file in used.files) == sorted(file.locator for file in upstream.before.files)
    upstream.replica.faults.clear()
    assert is_new(upstream, upstream.pull())


LASTING_AT_THE_HUB: dict[str, tuple[str, Fault, str]] = {
    "refused": (REVISION, faults.refused(), "the Hub breaks off its answer, 5 times in a row"),
    "500": (REVISION, faults.server_error(502), "the Hub answers 502 Bad Gateway, 5 times in a row"),
    "429 for a day": (LISTING, faults.too_many_requests(86_400, as_date=True), "asks to be left alone for 86"),
    "slow": (LISTING, SLOW, "the Hub answers too slowly, 5 times in a row"),
    "a page": (REVISION, faults.web_page(), "the Hub's answer is not of the form that its API has"),
    "half a list": (LISTING, faults.truncated(), "the Hub's answer is not of the form that its API has"),
    "an empty list": (LISTING, faults.empty_listing(), "the Hub lists no Parquet file, which cannot be"),
    "NaN": (LISTING, faults.not_a_number("size"), "the Hub's answer is not of the form that its API has"),
    "a list of numbers": (
        LISTING,
        lambda answer: answer.with_content(b"[1, 2]"),
        "is not of the form that its API has",
    ),
    "deep": (LISTING, lambda answer: answer.with_content(b"[" * 100_000), "is not of the form that its API has"),
    "no commit": (
        REVISION,
        lambda answer: answer.with_content(b'{"id": "x", "sha": "main"}'),
        "names no commit for main",
    ),
    "elsewhere": (LISTING, faults.redirect("https://192.0.2.7/x"), "the Hub's API redirects to another host"),
    "no such dataset": (
        REVISION,
        lambda _: Answer(404, {"X-Error-Code": "RepoNotFound"}),
        "no dataset GPUMODE/kernelb",
    ),
    "forbidden": (REVISION, lambda _: Answer(403), "the Hub answers 403 Forbidden"),
}


@pytest.mark.parametrize(("where", "fault", "why"), LASTING_AT_THE_HUB.values(), ids=LASTING_AT_THE_HUB)
def test_without_the_hub_the_last_good_files_are_used_and_stale(
    upstream: Upstream, where: str, fault: Fault, why: str
) -> None:
    upstream.replica.faults.add(where, fault, times=None)
    collection = upstream.pull(patience_for(fault))
    (line,) = collection.stale
    assert line.startswith(f"{SOURCE}: ")
    assert line.endswith("; what was pulled before is used")
    assert why in line
    assert "\n" not in line
    assert "127.0.0.1" not in line
    assert collection == replace(upstream.before, stale=(line,))
    assert contents(upstream.replica.requests) == []
    with pytest.raises(UnreadableError, match=rf"^{SOURCE}: the Hub"):
        pull(HubClient(upstream.replica.hub_endpoint, patience=patience_for(fault)), upstream.raw, None)


def test_a_hub_that_is_not_there_is_one_line(upstream: Upstream) -> None:
    with Replica(upstream.dataset.parent) as gone:
        endpoint = gone.hub_endpoint
    collection = pull(HubClient(endpoint, patience=hurried()), upstream.raw, upstream.before)
    assert collection.stale == (
        f"{SOURCE}: the Hub is not reached, 5 times in a row; ingest again later; what was pulled before is used",
    )


def test_a_key_that_is_there_twice_changes_nothing_that_is_checked(upstream: Upstream) -> None:
    upstream.replica.faults.add(LISTING, faults.key_twice("type"), times=None)
    assert upstream.pull().unreadable == ()


def test_an_answer_without_an_end_is_not_read_to_it(upstream: Upstream) -> None:
    upstream.replica.faults.add(LISTING, lambda answer: answer.with_content(b" " * 200_000), times=None)
    assert "sends an answer of more than 100000 bytes" in upstream.pull(hurried(answer_bytes=100_000)).stale[0]


def test_a_run_has_a_budget_of_retries(upstream: Upstream) -> None:
    for name in ("trimul_submissions.parquet", "leaderboards.parquet"):
        file_changes(upstream.dataset.parent, name)
    upstream.replica.faults.add(FILES, faults.server_error(), times=None)
    assert len(upstream.pull(hurried(retries=6)).unreadable) == 3
    failed = [request for request in upstream.replica.requests if request.status == 500]
    assert len(failed) == 3 + 6


@pytest.mark.parametrize("mark", ["../../../escaped", "..", "a/b"])
def test_a_mark_that_would_be_a_path_is_refused(upstream: Upstream, mark: str) -> None:
    upstream.replica.faults.add("HEAD ", lambda answer: answer.with_headers(X_Linked_Etag=f'"{mark}"'), times=None)
    collection = pull(
        HubClient(upstream.replica.hub_endpoint, patience=hurried()), upstream.raw, upstream.before, whole=True
    )
    assert {reason for _, reason in collection.unreadable} == {
        "the Hub sends a header x-linked-etag that it never would; check HF_ENDPOINT"
    }


def test_a_proxy_that_refuses_is_one_line(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with RefusingProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("http://", "http://someone:proxyword@"))
        (line,) = upstream.pull().stale
        assert proxy.requests
    assert "the Hub answers 403 Forbidden" in line
    assert "proxyword" not in line
    assert upstream.replica.requests == []


def test_a_proxy_that_is_not_there_is_one_line(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with RefusingProxy() as proxy:
        url = proxy.url
    monkeypatch.setenv("HTTP_PROXY", url)
    assert "the Hub is not reached" in upstream.pull().stale[0]


def test_nothing_is_asked_where_the_client_is_to_stay_offline(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert upstream.pull().stale == (
        f"{SOURCE}: the Hub is not asked, since HF_HUB_OFFLINE is set; unset it; what was pulled before is used",
    )
    assert upstream.replica.requests == []


@pytest.mark.parametrize("whole", [False, True])
def test_a_full_disk_is_one_line_and_leaves_nothing_behind(
    upstream: Upstream, whole: bool, full_disk: Callable[[int], None]
) -> None:
    assert upstream.replica.revision  # the replica has copied what it serves
    hub = HubClient(upstream.replica.hub_endpoint, patience=hurried())
    objects = sorted((upstream.raw.root / "objects").rglob("*"))
    full_disk(1000)
    with pytest.raises(HomeError, match=r"^\w+\.parquet: cannot be kept in .*: File too large$"):
        pull(hub, upstream.raw, upstream.before, whole=whole)
    full_disk(-1)
    assert [path for path in sorted((upstream.raw.root / "objects").rglob("*")) if path not in objects] == []
    assert list(damage(upstream.raw)) == []
    assert is_new(upstream, upstream.pull())


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """Lets no file of this process grow beyond so many bytes; -1 for as many as there are."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if most < 0 else most, before[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_log_names_no_address(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    upstream.replica.faults.add(FILES, faults.reset_midway(), times=3)
    upstream.pull()
    assert "fetched 'submissions.parquet': " in caplog.text
    assert "127.0.0.1" not in caplog.text


def test_a_list_of_files_without_end_is_given_up(upstream: Upstream) -> None:
    link = f'<{upstream.replica.hub_endpoint}/api/datasets/GPUMODE/kernelbot-data/tree/x?cursor=1>; rel="next"'
    headers = {"Content-Type": "application/json", "Link": link}
    upstream.replica.faults.add(LISTING, lambda _: Answer(200, headers, b"[]"), times=None)
    [line] = upstream.pull(hurried(answers=30)).stale
    assert "the Hub takes more than 30 answers to list its files" in line
    assert len(upstream.replica.requests) <= 31


def test_a_file_whose_name_is_no_text_is_left_out(upstream: Upstream) -> None:
    def named_oddly(answer: Answer) -> Answer:
        entry = '{"type": "file", "oid": "' + "a" * 40 + '", "size": 1, "path": "\\ud800.parquet"}, '
        return replace(answer, content=b"[" + entry.encode() + answer.content_bytes()[1:])

    upstream.replica.faults.add(LISTING, named_oddly)
    found = upstream.pull()
    assert (found.stale, found.unreadable) == ((), ())
    assert [file.locator for file in found.files] == [file.locator for file in upstream.before.files]
