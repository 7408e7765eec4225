"""A published snapshot is read by its URL: the pointer once, the DuckDB file from the cache, and nothing on trust."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.commands import printed, refused, run
from tests.s3_server import BUCKET, S3Server, serving, use
from tests.small_snapshot import BOARD, run_id
from warehouse.elsewhere import latest_of, publish_to
from warehouse.errors import SnapshotError
from warehouse.files import sha256
from warehouse.home import Home
from warehouse.snapshots import DATABASE, Snapshot, required
from warehouse.stores import Store

URL = f"s3://{BUCKET}/nightly"
DIGEST = "0" * 64


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELMART_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def snapshot(known_home: Path) -> Snapshot:
    return required(Home(known_home))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> Iterator[S3Server]:
    """A server with the snapshot published to it."""
    with serving() as server:
        use(server, monkeypatch)
        publish_to(URL, snapshot)
        server.asked.clear()
        yield server


@pytest.fixture
def store(tmp_path: Path, snapshot: Snapshot) -> Path:
    """A folder with the snapshot published to it."""
    publish_to(f"file://{tmp_path / 'store'}", snapshot)
    return tmp_path / "store"


@pytest.mark.parametrize(
    "words",
    [
        ("top", BOARD, "--case", "0", "--json"),
        ("show", run_id(29858), "--json"),
        ("show", run_id(29858), "--manifest"),
        ("sql", "select * from run_record order by run_id", "--format", "json"),
        ("cite", run_id(29858)),
        ("compare", run_id(29858)),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_a_command_says_of_a_url_what_it_says_of_a_home(words: tuple[str, ...], known_home: Path, store: Path) -> None:
    hidden = str(known_home), f"file://{store}"
    here, there = (printed(home, *words).replace(home, "HOME") for home in hidden)
    assert here == there
    assert len(here) > 100


def test_the_url_may_be_the_home_of_the_environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from pipelines.cli import main

    monkeypatch.setenv("KERNELMART_HOME", URL)
    result = CliRunner().invoke(main, ["sql", "select count(*) as n from runs", "--format", "csv"])
    assert (result.exit_code, result.output) == (0, "n\n12\n")
    assert s3.asked


def test_the_pointer_is_read_once_and_the_database_is_fetched_once(
    s3: S3Server, snapshot: Snapshot, cache: Path
) -> None:
    folder = f"nightly/snapshots/{snapshot.snapshot_id}"
    keys = []
    for _ in range(2):
        s3.asked.clear()
        printed(URL, "top", BOARD)
        keys.append([asked.key for asked in s3.asked if asked.method == "GET" and asked.key])
    first, second = keys
    assert second == ["nightly/snapshots/latest.json", f"{folder}/manifest.json"]
    assert first[:2] == second
    assert set(first[2:]) == {f"{folder}/{DATABASE}"}
    digest = sha256(snapshot.database)
    assert [path for path in cache.rglob("*") if path.is_file()] == [cache / digest / DATABASE]
    assert (cache / digest / DATABASE).stat().st_mode & 0o777 == 0o444


def test_a_cached_file_is_verified_before_use(cache: Path, store: Path, snapshot: Snapshot) -> None:
    words = (f"file://{store}", "sql", "select count(*) as n from runs", "--format", "csv")
    printed(*words)
    cached = cache / sha256(snapshot.database) / DATABASE
    content = cached.read_bytes()
    for damaged in (content[:-1] + bytes([content[-1] ^ 1]), content[:1000], b""):
        cached.chmod(0o600)
        cached.write_bytes(damaged)
        assert printed(*words) == "n\n12\n"
        assert cached.read_bytes() == content


@pytest.mark.parametrize("how", ["another byte", "shorter", "longer"])
def test_a_database_that_is_not_the_manifests_is_not_used(
    how: str, cache: Path, store: Path, snapshot: Snapshot
) -> None:
    path = store / "snapshots" / snapshot.snapshot_id / DATABASE
    content = path.read_bytes()
    path.write_bytes({"another byte": content[:-1] + bytes([content[-1] ^ 1]), "shorter": content[:-1],
                      "longer": content + b"x"}[how])  # fmt: skip
    said = refused(f"file://{store}", "top", BOARD)
    assert f"{DATABASE}: its bytes are not those that the manifest names" in said
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_manifest_that_is_not_the_pointers_is_not_used(store: Path, snapshot: Snapshot) -> None:
    path = store / "snapshots" / snapshot.snapshot_id / "manifest.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert "it is not the manifest that the pointer names" in refused(f"file://{store}", "top", BOARD)
    path.unlink()
    assert "the manifest that the pointer names is gone" in refused(f"file://{store}", "top", BOARD)


@pytest.mark.parametrize(
    "pointer",
    [
        b"", b"{", b"[]", b'{"path": "x"}', b"[" * 100_000,
        json.dumps({"path": "../other", "manifest_sha256": DIGEST}).encode(),
        json.dumps({"path": "/etc", "manifest_sha256": DIGEST}).encode(),
        json.dumps({"path": "a/b", "manifest_sha256": DIGEST}).encode(),
        json.dumps({"path": ".draft", "manifest_sha256": DIGEST}).encode(),
        json.dumps({"path": "x", "manifest_sha256": "../../x"}).encode(),
        json.dumps({"path": ["x"], "manifest_sha256": DIGEST}).encode(),
    ],
)  # fmt: skip
def test_a_hostile_pointer_is_refused(pointer: bytes, store: Path) -> None:
    (store / "snapshots" / "latest.json").write_bytes(pointer)
    assert "latest.json: it " in refused(f"file://{store}", "sql", "select 1")


@pytest.mark.parametrize(
    "name", ["../kernelmart.duckdb", "/etc/passwd", "a/../../b", "a//b", "./a", "", ".", "..", "c:\\x", "a\\b", "c:x",
             "a\nb", "parquet/\x1b[31m"],
)  # fmt: skip
def test_a_manifest_that_names_a_file_outside_its_snapshot_is_refused(name: str, store: Path, cache: Path) -> None:
    _rewrite(store, lambda manifest: manifest["files"].update({name: {"sha256": DIGEST, "size_bytes": 1}}))
    said = refused(f"file://{store}", "top", BOARD)
    assert "outside its snapshot; do not use that store" in said
    assert not cache.exists()


@pytest.mark.parametrize(
    "stated",
    [
        {"sha256": "../../../x", "size_bytes": 1},
        {"sha256": DIGEST[:-1], "size_bytes": 1},
        {"sha256": DIGEST, "size_bytes": -1},
        {"sha256": DIGEST, "size_bytes": "1"},
        {"sha256": DIGEST, "size_bytes": True},
        {"sha256": None, "size_bytes": 1},
        "x",
        None,
    ],
)
def test_a_manifest_that_states_no_digest_and_size_is_refused(stated: Any, store: Path, cache: Path) -> None:
    _rewrite(store, lambda manifest: manifest["files"].update({DATABASE: stated}))
    assert f"it states no digest and size of {DATABASE}" in refused(f"file://{store}", "top", BOARD)
    assert not cache.exists()


@pytest.mark.parametrize("change", [{"files": []}, {"files": None}, {"snapshot_id": 1}, {"snapshot_id": "../x"}])
def test_a_manifest_of_another_form_is_refused(change: dict[str, Any], store: Path) -> None:
    _rewrite(store, lambda manifest: manifest.update(change))
    assert "it is no manifest of a snapshot" in refused(f"file://{store}", "top", BOARD)


def test_a_manifest_of_another_snapshot_or_without_a_database_is_refused(store: Path) -> None:
    _rewrite(store, lambda manifest: manifest["files"].pop(DATABASE))
    assert f"its manifest names no {DATABASE}" in refused(f"file://{store}", "top", BOARD)
    _rewrite(store, lambda manifest: manifest.update(snapshot_id="another"))
    assert "it is the manifest of another snapshot" in refused(f"file://{store}", "top", BOARD)


def test_a_store_that_cannot_be_reached_is_one_clear_line(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from s3fs import S3FileSystem

    s3.client.delete_object(Bucket=BUCKET, Key="nightly/snapshots/latest.json")
    assert refused(URL, "top", BOARD) == (
        f"{URL}/snapshots/latest.json: no snapshot is published there; 'kernelmart publish' does it"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    S3FileSystem.clear_instance_cache()
    for url in (URL, "http://127.0.0.1:1/nightly"):
        result = run(url, "top", BOARD)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert f"{url}/snapshots/latest.json: the store cannot be used (" in result.stderr
        assert "check its address, the network and the credentials" in result.stderr


def test_a_folder_behind_a_web_server_is_read_by_its_address(store: Path, known_home: Path) -> None:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(store)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        words = ("sql", "select * from leaderboard", "--format", "json")
        assert printed(url, *words) == printed(known_home, *words)
        assert "no snapshot is published there" in refused(f"{url}/nowhere", "top", BOARD)
        assert refused(known_home, "publish", "--to", url).startswith(f"{url}/snapshots/")
        # The commands that a page names do not hold what the URL keeps secret.
        secret = url.replace("//", "//somebody:hunter2@")
        page = printed(secret, "top", BOARD)
        assert f"--home {url.replace('//', '//***@')}" in page.replace("'", "")
        assert "hunter2" not in page
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_path_says_where_a_published_snapshot_is(store: Path, snapshot: Snapshot, cache: Path) -> None:
    url = f"file://{store}"
    folder = f"{url}/snapshots/{snapshot.snapshot_id}"
    assert printed(url, "path") == f"{folder}\n"
    assert printed(url, "path", "runs") == f"{folder}/parquet/runs/*.parquet\n"
    assert printed(url, "path", "duckdb") == f"{cache / sha256(snapshot.database) / DATABASE}\n"
    assert "there is no table 'nope'" in refused(url, "path", "nope", code=2)


@pytest.mark.parametrize(
    "words",
    [("ingest", "--from", "."), ("publish", "--to", "memory://x"), ("snapshots", "list"), ("status",), ("check",)],
)
def test_a_command_that_needs_a_folder_takes_no_url(words: tuple[str, ...]) -> None:
    said = refused("s3://somebody:hunter2@nightly", *words, code=2)
    assert "s3://***@nightly is a store elsewhere, and this command works on a folder" in said
    assert "hunter2" not in said
    assert not Path("s3:").exists()


def test_what_nobody_asked_for_in_a_week_leaves_the_cache(store: Path, cache: Path, snapshot: Snapshot) -> None:
    old, used = cache / ("a" * 64) / DATABASE, cache / ("b" * 64) / DATABASE
    strange = cache / "notes" / DATABASE
    for path in (old, used, strange):
        path.parent.mkdir(parents=True)
        path.touch()
    weeks_ago = time.time() - 20 * 86_400
    os.utime(old, (weeks_ago, weeks_ago))
    os.utime(strange, (weeks_ago, weeks_ago))
    latest_of(Store(f"file://{store}")).cached()
    assert {path.name for path in cache.iterdir()} == {"b" * 64, "notes", sha256(snapshot.database)}


def test_the_cache_is_where_the_platform_has_caches(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.delenv("KERNELMART_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    cached = latest_of(Store(f"file://{store}")).cached()
    assert cached.database == tmp_path / "xdg" / "kernelmart" / sha256(snapshot.database) / DATABASE


def test_a_cache_that_cannot_be_written_is_one_line(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KERNELMART_CACHE", str(tmp_path / "file"))
    result = run(f"file://{store}", "top", BOARD)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_a_store_without_a_database_of_its_manifest_is_no_error_of_the_cache(store: Path, snapshot: Snapshot) -> None:
    published = latest_of(Store(f"file://{store}"))
    (store / "snapshots" / snapshot.snapshot_id / DATABASE).unlink()
    with pytest.raises(Exception, match="the store cannot be used") as caught:
        published.cached()
    assert not isinstance(caught.value, SnapshotError)


def _rewrite(store: Path, change: Any) -> None:
    """Change a published manifest, and the pointer to name it as it is now."""
    pointer = store / "snapshots" / "latest.json"
    named = json.loads(pointer.read_bytes())
    path = store / "snapshots" / named["path"] / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))
    named["manifest_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    pointer.write_text(json.dumps(named))
