"""The replica, as the real clients of both services see it: all well, and with each fault."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest
import requests
import yaml
from huggingface_hub import HfApi, HfFileSystem, hf_hub_download, set_client_factory
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils._http import default_client_factory

from replica import changes, faults
from replica.corpus import write_corpus
from replica.hub_files import NOT_ON_CARD
from replica.hub_service import DATASET
from replica.proxy import RefusingProxy
from replica.server import Replica

FILE = "submissions.parquet"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that no test changes."""
    return write_corpus(tmp_path_factory.mktemp("replica_corpus"), seed=1, scale=0.001).folder


@pytest.fixture(autouse=True)
def _plain_client() -> None:
    """The Hub's client as it comes, whatever bounds another test in this process has set it."""
    set_client_factory(default_client_factory)


@pytest.fixture
def replica(saved: Path) -> Iterator[Replica]:
    with Replica(saved) as running:
        yield running


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A corpus that a test may change."""
    return Path(shutil.copytree(saved, tmp_path / "corpus"))


def api(replica: Replica, token: str | bool = False) -> HfApi:
    return HfApi(endpoint=replica.hub_endpoint, token=token)


def download(replica: Replica, cache: Path, name: str = FILE, **more: Any) -> Path:
    found = hf_hub_download(
        DATASET, name, repo_type="dataset", endpoint=replica.hub_endpoint, cache_dir=cache, **{"token": False, **more}
    )
    return Path(found)


def sol(replica: Replica, path: str, **query: Any) -> requests.Response:
    return requests.get(replica.sol_url + path, params=query, timeout=5, allow_redirects=False)


def page(replica: Replica, kernel: int, **query: Any) -> Any:
    return sol(replica, "/submissions", kernel_id=kernel, **query).json()["data"]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# The Hub


def test_dataset_info_names_the_commit_the_files_and_the_card(saved: Path, replica: Replica) -> None:
    info: Any = api(replica).dataset_info(DATASET, files_metadata=True)
    names = {path.name for path in (saved / "kernelbot").iterdir()}
    assert info.sha == replica.revision
    assert len(info.sha) == 40
    assert {sibling.rfilename for sibling in info.siblings} == names | {"README.md", ".gitattributes"}
    lfs = {sibling.rfilename: sibling.lfs for sibling in info.siblings if sibling.lfs}
    assert lfs[FILE].sha256 == sha256(saved / "kernelbot" / FILE)
    assert lfs[FILE].size == (saved / "kernelbot" / FILE).stat().st_size
    assert {config["config_name"] + ".parquet" for config in info.card_data["configs"]} == names - {NOT_ON_CARD}


def test_the_card_of_the_repository_says_what_the_information_says(replica: Replica, tmp_path: Path) -> None:
    text = download(replica, tmp_path, "README.md").read_text(encoding="utf-8")
    configs = yaml.safe_load(text.split("---\n")[1])["configs"]
    info: Any = api(replica).dataset_info(DATASET)
    assert configs == info.card_data["configs"]


def test_the_list_of_files_comes_in_pages_that_the_client_follows(saved: Path) -> None:
    with Replica(saved, page_size=4) as replica:
        entries: list[Any] = list(
            api(replica).list_repo_tree(DATASET, repo_type="dataset", recursive=True, expand=True)
        )
        assert [request.query.get("cursor") for request in replica.requests] == [None, "4", "8", "12"]
        revision = replica.revision
    files = {path.name: path for path in (saved / "kernelbot").iterdir()}
    assert sorted(entry.path for entry in entries) == sorted([*files, "README.md", ".gitattributes"])
    large = next(entry for entry in entries if entry.path == FILE)
    assert (large.size, large.lfs.sha256) == (files[FILE].stat().st_size, sha256(files[FILE]))
    assert large.last_commit.oid == revision


def test_paths_that_exist_are_described_and_others_left_out(saved: Path, replica: Replica) -> None:
    found: list[Any] = api(replica).get_paths_info(DATASET, [FILE, "nowhere.parquet"], repo_type="dataset")
    assert [(info.path, info.lfs.sha256) for info in found] == [(FILE, sha256(saved / "kernelbot" / FILE))]


def test_a_download_has_the_digest_that_the_list_of_files_promises(replica: Replica, tmp_path: Path) -> None:
    revision = replica.revision
    path = download(replica, tmp_path, revision=revision)
    info: Any = api(replica).get_paths_info(DATASET, FILE, repo_type="dataset", revision=revision)[0]
    assert path.parent.name == revision
    assert sha256(path) == info.lfs.sha256
    assert replica.requests[-2].bytes_sent == info.size


def test_a_file_system_reads_only_the_ranges_that_it_needs(saved: Path, replica: Replica) -> None:
    files = HfFileSystem(endpoint=replica.hub_endpoint, token=False, skip_instance_cache=True)
    with files.open(f"datasets/{DATASET}@{replica.revision}/{FILE}", cache_type="none") as opened:
        opened.seek(100)
        middle = opened.read(50)
        opened.seek(0)
        column = pq.read_table(opened, columns=["submission_id"])
    whole = saved / "kernelbot" / FILE
    assert middle == whole.read_bytes()[100:150]
    assert column.equals(pq.read_table(whole, columns=["submission_id"]))
    sent = [request for request in replica.requests if request.path.startswith("/lfs/")]
    assert (sent[0].status, sent[0].range, sent[0].bytes_sent) == (206, "bytes=100-149", 50)
    assert sum(request.bytes_sent for request in sent) < whole.stat().st_size


@pytest.mark.parametrize(
    ("wanted", "status", "content"),
    [
        ("bytes=0-3", 206, b"PAR1"),
        ("bytes=-4", 206, b"PAR1"),
        ("bytes=999999999-", 416, b""),
        ("bytes=0-1,3-4", 200, None),
        ("lines=1-2", 200, None),
    ],
)
def test_ranges_are_answered_as_http_says(
    replica: Replica, saved: Path, wanted: str, status: int, content: bytes | None
) -> None:
    url = f"{replica.hub_endpoint}/datasets/{DATASET}/resolve/main/{FILE}"
    answer = requests.get(url, headers={"Range": wanted}, timeout=5)
    whole = (saved / "kernelbot" / FILE).read_bytes()
    assert (answer.status_code, answer.content) == (status, whole if content is None else content)


def test_what_does_not_exist_is_told_in_the_hubs_own_words(replica: Replica, tmp_path: Path) -> None:
    with pytest.raises(RevisionNotFoundError):
        api(replica).dataset_info(DATASET, revision="0" * 40)
    with pytest.raises(RepositoryNotFoundError):
        api(replica).dataset_info("somebody/else")
    with pytest.raises(HfHubHTTPError, match="Entry Not Found"):
        download(replica, tmp_path, "nowhere.parquet")


def test_main_moves_with_the_files_and_an_earlier_revision_stays(folder: Path, tmp_path: Path) -> None:
    before = sha256(folder / "kernelbot" / FILE)
    with Replica(folder) as replica:
        first = replica.revision
        changes.file_changes(folder, FILE)
        assert api(replica).dataset_info(DATASET).sha == replica.revision != first
        assert sha256(download(replica, tmp_path, revision=first)) == before
        assert sha256(download(replica, tmp_path)) == sha256(folder / "kernelbot" / FILE) != before


def test_a_revision_follows_from_the_contents_alone(saved: Path, folder: Path) -> None:
    with Replica(saved) as one, Replica(folder) as other:
        assert one.revision == other.revision


def test_a_token_is_required_where_the_replica_says_so(saved: Path, tmp_path: Path) -> None:
    with Replica(saved, token="right", store_apart=True) as replica:  # noqa: S106
        with pytest.raises(RepositoryNotFoundError):
            api(replica).dataset_info(DATASET)
        with pytest.raises(HfHubHTTPError, match="Invalid credentials"):
            api(replica, token="wrong").dataset_info(DATASET)  # noqa: S106
        path = download(replica, tmp_path, token="right")  # noqa: S106
        assert sha256(path) == sha256(saved / "kernelbot" / FILE)
        bearers = {request.path[:5]: request.headers.get("authorization") for request in replica.requests}
    # The client keeps its token from the other host that large files come from.
    assert bearers == {"/api/": "Bearer wrong", "/data": "Bearer right", "/lfs/": None}


# The SOL-ExecBench API


def test_saved_answers_come_as_they_were_saved(saved: Path, replica: Replica) -> None:
    folder = saved / "sol_execbench"
    for path, name in (
        ("/kernels", "kernels.json"),
        ("/kernels/9003", "kernels/9003.json"),
        ("/submissions?kernel_id=1&limit=50", "submissions/1.json"),
        ("/submissions?kernel_id=1&limit=50&offset=50", "submissions/1.2.json"),
        ("/submissions?kernel_id=9002&limit=50", "submissions/9002.json"),
        ("/leaderboard/kernel/1/B200?evaluation_stack_version=v1.1", "leaderboards/1.B200.v1.1.json"),
        ("/leaderboard/kernel/1/B200", "leaderboards/1.B200.v1.1.json"),
    ):
        assert sol(replica, path).content == (folder / name).read_bytes(), path


@pytest.mark.parametrize(
    "path",
    ["/kernels/123456", "/collections/4", "/leaderboard/kernel/1/A100", "/kernels/..%2F1", "/nothing", "/kernels/1/2"],
)
def test_anything_else_is_a_json_404(replica: Replica, path: str) -> None:
    answer = sol(replica, path)
    assert (answer.status_code, answer.json()) == (404, {"error": "not found"})


def test_a_collection_is_served_where_it_was_saved(folder: Path) -> None:
    (folder / "sol_execbench" / "collections").mkdir()
    (folder / "sol_execbench" / "collections" / "4.json").write_text('{"data": {"id": 4}}')
    with Replica(folder) as replica:
        assert sol(replica, "/collections/4").json() == {"data": {"id": 4}}


def test_pages_are_twenty_long_and_never_more_than_fifty(replica: Replica) -> None:
    assert [len(page(replica, 5, **query)["submissions"]) for query in ({}, {"limit": 7}, {"limit": 500})] == [
        20,
        7,
        50,
    ]
    ids = [row["id"] for offset in (0, 50) for row in page(replica, 5, limit=50, offset=offset)["submissions"]]
    assert (len(set(ids)), page(replica, 5)["total"]) == (100, 100)
    small = [row["id"] for offset in range(0, 60, 20) for row in page(replica, 5, offset=offset)["submissions"]]
    assert small[:50] == ids[:50]


def test_nothing_is_reached_past_offset_fifty_but_by_filters(folder: Path) -> None:
    changes.submissions_arrive(folder, 6, 60, evaluation_stack_version="v1.0", status="QUEUED")
    changes.submissions_arrive(folder, 6, 60, evaluation_stack_version="v2.0")
    with Replica(folder) as replica:
        reached = [
            row["id"] for offset in (0, 50, 100) for row in page(replica, 6, limit=50, offset=offset)["submissions"]
        ]
        assert len(set(reached)) == 100
        assert page(replica, 6, limit=50, offset=51)["submissions"] == []
        queued = page(
            replica, 6, status="QUEUED", evaluation_stack_version="v1.0", gpu_type="B200", limit=50, offset=50
        )
        assert queued["total"] == 60
        assert len(queued["submissions"]) == 10
        assert queued["submissions"][-1]["id"] not in reached
        listed = {kernel["id"]: kernel for kernel in sol(replica, "/kernels").json()["data"]["kernels"]}
        assert listed[6]["submission_count"] == page(replica, 6)["total"] == 123


def test_odd_rows_keep_every_byte_on_any_page(saved: Path, replica: Replica) -> None:
    text = (saved / "sol_execbench" / "submissions" / "9001.json").read_text(encoding="utf-8")
    pages = [sol(replica, "/submissions", kernel_id=9001, limit=50, offset=offset).text for offset in (0, 50)]
    rows = [one.partition("[")[2].rpartition("]")[0] for one in pages]
    assert ", ".join(rows) == text.partition("[")[2].rpartition("]")[0]
    assert "NaN" in pages[0]


def test_a_request_without_sense_is_a_400(replica: Replica) -> None:
    for query in ("", "?kernel_id=x", "?kernel_id=1&limit=-1", "?kernel_id=1&offset=a"):
        assert sol(replica, f"/submissions{query}").status_code == 400


def test_a_later_disqualification_does_not_show_in_the_listing(folder: Path) -> None:
    with Replica(folder) as replica:
        before, first = sol(replica, "/kernels").content, page(replica, 3)["submissions"][0]
        changes.submission_changes(folder, 3, first["id"], is_disqualified=True)
        assert page(replica, 3)["submissions"][0] == first | {"is_disqualified": True}
        assert sol(replica, "/kernels").content == before


# Faults


def resolve(replica: Replica, **more: Any) -> requests.Response:
    return requests.get(f"{replica.hub_endpoint}/datasets/{DATASET}/resolve/main/{FILE}", timeout=5, **more)


def test_a_refused_connection_gives_no_answer(replica: Replica) -> None:
    replica.faults.add("/kernels", faults.refused())
    with pytest.raises(requests.ConnectionError):
        sol(replica, "/kernels")
    assert sol(replica, "/kernels").status_code == 200
    assert [request.status for request in replica.requests] == [0, 200]


def test_a_reset_in_the_middle_ends_a_download(saved: Path, replica: Replica, tmp_path: Path) -> None:
    replica.faults.add("^GET /lfs/", faults.reset_midway())
    with pytest.raises(httpx2.ReadError):
        download(replica, tmp_path)
    assert replica.requests[-1].bytes_sent == (saved / "kernelbot" / FILE).stat().st_size // 2
    assert sha256(download(replica, tmp_path)) == sha256(saved / "kernelbot" / FILE)


def test_the_hubs_client_goes_on_after_a_body_shorter_than_promised(
    saved: Path, replica: Replica, tmp_path: Path
) -> None:
    replica.faults.add("^GET /lfs/", faults.short_body(missing=1000))
    assert sha256(download(replica, tmp_path)) == sha256(saved / "kernelbot" / FILE)
    size = (saved / "kernelbot" / FILE).stat().st_size
    assert [one.bytes_sent for one in replica.requests if one.bytes_sent] == [size - 1000, size]


def test_a_body_shorter_than_promised_is_an_error_to_requests(replica: Replica) -> None:
    replica.faults.add("/kernels", faults.short_body())
    with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
        sol(replica, "/kernels")


def test_a_slow_answer_ends_when_the_client_gives_up_and_with_the_replica(saved: Path) -> None:
    with Replica(saved) as replica:
        replica.faults.add("/kernels", faults.slow_drip(pause=30), times=None)
        with pytest.raises(requests.exceptions.ConnectionError, match="timed out"):
            requests.get(replica.sol_url + "/kernels", timeout=0.2)
        replica.faults.clear()
        replica.faults.add("/kernels", faults.slow_drip(pause=0.001))
        with requests.get(replica.sol_url + "/kernels", timeout=5, stream=True) as answer:
            assert [next(answer.iter_content(1)) for _ in range(3)] == [b"{", b"\n", b" "]


def test_a_file_of_the_wrong_length_is_noticed_by_the_hubs_client(replica: Replica, tmp_path: Path) -> None:
    replica.faults.add("^GET /lfs/", faults.truncated())
    with pytest.raises(OSError, match="should be of size"):
        download(replica, tmp_path)


def test_wrong_bytes_of_the_right_length_are_not_noticed_by_the_hubs_client(
    saved: Path, replica: Replica, tmp_path: Path
) -> None:
    replica.faults.add("^GET /lfs/", faults.wrong_bytes())
    found, right = download(replica, tmp_path).read_bytes(), (saved / "kernelbot" / FILE).read_bytes()
    assert len(found) == len(right)
    assert [at for at in range(len(right)) if found[at] != right[at]] == [len(right) // 2]


def test_a_web_page_comes_with_status_200(replica: Replica) -> None:
    replica.faults.add("/resolve/|/kernels", faults.web_page(), times=2)
    for answer in (resolve(replica), sol(replica, "/kernels")):
        assert (answer.status_code, answer.headers["Content-Type"][:9], answer.text[:9]) == (
            200,
            "text/html",
            "<!DOCTYPE",
        )


def test_a_pointer_comes_in_place_of_the_file_that_it_names(saved: Path, replica: Replica) -> None:
    replica.faults.add("^GET /lfs/", faults.pointer_file())
    lines = resolve(replica, headers={"Range": "bytes=0-99"}).text.splitlines()
    assert lines[0] == "version https://git-lfs.github.com/spec/v1"
    assert lines[1] == f"oid sha256:{sha256(saved / 'kernelbot' / FILE)}"
    assert lines[2] == f"size {(saved / 'kernelbot' / FILE).stat().st_size}"


def test_listings_can_be_empty(replica: Replica) -> None:
    replica.faults.add("", faults.empty_listing(), times=None)
    assert list(api(replica).list_repo_tree(DATASET, repo_type="dataset")) == []
    assert api(replica).dataset_info(DATASET).siblings == []
    assert sol(replica, "/kernels").json() == {"data": {"kernels": []}}
    assert page(replica, 1)["submissions"] == []


def test_too_many_requests_come_with_seconds_a_date_or_nothing(replica: Replica) -> None:
    for fault in (
        faults.too_many_requests(7),
        faults.too_many_requests(60, as_date=True),
        faults.too_many_requests(),
    ):
        replica.faults.add("/kernels", fault)
    answers = [sol(replica, "/kernels") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [429, 429, 429, 200]
    assert answers[0].headers["Retry-After"] == "7"
    wait = parsedate_to_datetime(answers[1].headers["Retry-After"]) - parsedate_to_datetime(answers[1].headers["Date"])
    assert 58 <= wait.total_seconds() <= 61
    assert "Retry-After" not in answers[2].headers


def test_errors_clear_after_so_many_or_stay(replica: Replica) -> None:
    rule = replica.faults.add("/kernels$", faults.server_error(), times=2, skip=1)
    assert [sol(replica, "/kernels").status_code for _ in range(4)] == [200, 500, 500, 200]
    assert rule.used == 2
    replica.faults.add("/kernels$", faults.server_error(503), times=None)
    assert [sol(replica, "/kernels").status_code for _ in range(3)] == [503, 503, 503]
    replica.faults.clear()
    assert sol(replica, "/kernels").status_code == 200


def test_the_hubs_client_lists_again_after_an_error_that_clears(replica: Replica) -> None:
    replica.faults.add("/tree/", faults.server_error())
    assert len(list(api(replica).list_repo_tree(DATASET, repo_type="dataset"))) == 15
    assert [request.status for request in replica.requests] == [500, 200]


def test_main_can_move_in_the_midst_of_a_pull(folder: Path, tmp_path: Path) -> None:
    with Replica(folder) as replica:
        before = sha256(folder / "kernelbot" / FILE)
        replica.faults.add("/api/datasets/", faults.meanwhile(lambda: changes.file_changes(folder, FILE)))
        pinned = api(replica).dataset_info(DATASET).sha
        assert replica.revision != pinned
        assert sha256(download(replica, tmp_path, revision=pinned)) == before


def test_pages_can_grow_and_shrink_while_they_are_walked(folder: Path) -> None:
    with Replica(folder) as replica:
        listed = [row["id"] for offset in (0, 50) for row in page(replica, 1, limit=50, offset=offset)["submissions"]]
        replica.faults.add("kernel_id=1&", faults.meanwhile(lambda: changes.submissions_arrive(folder, 1)))
        first, second = (page(replica, 1, limit=50, offset=offset) for offset in (0, 50))
        assert (first["total"], second["total"]) == (59, 60)
        assert second["submissions"][0]["id"] == first["submissions"][-1]["id"] == listed[49]
        replica.faults.add("kernel_id=5&", faults.meanwhile(lambda: changes.submission_goes(folder, 5)))
        first, second = (page(replica, 5, limit=50, offset=offset) for offset in (0, 50))
        assert (len(first["submissions"]), len(second["submissions"]), second["total"]) == (50, 49, 99)


def test_json_can_end_too_early(replica: Replica) -> None:
    replica.faults.add("/kernels", faults.truncated())
    answer = sol(replica, "/kernels")
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.content)


def test_json_can_hold_nan_and_a_key_twice(replica: Replica) -> None:
    replica.faults.add("kernel_id=1", faults.not_a_number("latency_ms"))
    replica.faults.add("kernel_id=1", faults.key_twice("id"))
    assert '"latency_ms": NaN' in sol(replica, "/submissions", kernel_id=1).text
    pairs: list[list[str]] = []
    json.loads(
        sol(replica, "/submissions", kernel_id=1).text,
        object_pairs_hook=lambda found: pairs.append([key for key, _ in found]),
    )
    assert [keys.count("id") for keys in pairs[:2]] == [2, 1]


def test_a_redirect_names_another_host(replica: Replica) -> None:
    replica.faults.add("/kernels", faults.redirect("http://elsewhere.invalid/kernels"))
    answer = sol(replica, "/kernels")
    assert (answer.status_code, answer.headers["Location"]) == (302, "http://elsewhere.invalid/kernels")


def test_a_proxy_can_refuse_what_is_asked_through_it(replica: Replica) -> None:
    with RefusingProxy() as proxy:
        through = {"http": proxy.url, "https": proxy.url}
        assert requests.get(replica.sol_url + "/kernels", proxies=through, timeout=5).status_code == 403
        with pytest.raises(requests.exceptions.ProxyError, match="403"):
            requests.get("https://elsewhere.invalid/", proxies=through, timeout=5)
        asked = [(request.method, request.path) for request in proxy.requests]
    assert asked == [("GET", replica.sol_url + "/kernels"), ("CONNECT", "elsewhere.invalid:443")]
    assert replica.requests == []


def test_an_error_inside_the_replica_is_not_hidden(saved: Path) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    running = Replica(saved)
    running.faults.add("/kernels", faults.meanwhile(broken))
    running.__enter__()
    with pytest.raises(requests.ConnectionError):
        sol(running, "/kernels")
    with pytest.raises(ZeroDivisionError):
        running.__exit__(None, None, None)


def test_the_command_prints_the_settings_and_serves_until_interrupted(saved: Path) -> None:
    command = [sys.executable, "-m", "replica.server", str(saved)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}) as process:
        try:
            assert process.stdout is not None
            settings = dict(process.stdout.readline().strip().split("=", 1) for _ in range(3))
            assert sorted(settings) == ["HF_ENDPOINT", "KERNELMART_SOL_INTERVAL_MS", "KERNELMART_SOL_URL"]
            assert HfApi(endpoint=settings["HF_ENDPOINT"], token=False).dataset_info(DATASET).id == DATASET
            assert requests.get(settings["KERNELMART_SOL_URL"] + "/kernels", timeout=5).status_code == 200
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
