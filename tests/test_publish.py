"""A snapshot is copied elsewhere as files that never change, the pointer last, and nothing secret is said."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import printed, refused, run
from tests.s3_server import BUCKET, SECRET, Asked, S3Server, serving, settings, use
from tests.small_snapshot import BOARD, case_result, publish, small_results
from warehouse.elsewhere import Publication, latest_of, publish_to
from warehouse.errors import SnapshotError, StoreError
from warehouse.files import sha256
from warehouse.home import Home
from warehouse.snapshots import DATABASE, Snapshot, required
from warehouse.stores import Store, is_url, redacted

URL = f"s3://{BUCKET}/nightly"
POINTER = "nightly/snapshots/latest.json"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with serving() as server:
        use(server, monkeypatch)
        yield server


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELMART_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def snapshot(known_home: Path) -> Snapshot:
    return required(Home(known_home))


@pytest.fixture(scope="module")
def two_homes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Homes of the same results and of one more of them; neither is changed."""
    root = tmp_path_factory.mktemp("two")
    first = publish(root / "first").root
    more = case_result(31000, 0, 4000000.0, "2025-06-05T00:00:00")
    return first, publish(root / "second", [*small_results(), more]).root


def test_the_files_are_put_and_then_the_manifest_and_then_the_pointer(s3: S3Server, snapshot: Snapshot) -> None:
    done = publish_to(URL, snapshot)
    objects, manifest = s3.objects(), snapshot.manifest
    folder = f"nightly/snapshots/{snapshot.snapshot_id}"
    assert set(objects) == {POINTER, f"{folder}/manifest.json", *(f"{folder}/{name}" for name in manifest["files"])}
    for name, stated in manifest["files"].items():
        assert hashlib.sha256(objects[f"{folder}/{name}"]).hexdigest() == stated["sha256"]
    assert [asked.key for asked in s3.put][-2:] == [f"{folder}/manifest.json", POINTER]
    pointer = json.loads(objects[POINTER])
    assert pointer.keys() == {"snapshot_id", "path", "manifest_sha256", "published_at"}
    assert pointer["path"] == pointer["snapshot_id"] == snapshot.snapshot_id
    assert pointer["manifest_sha256"] == sha256(snapshot.folder / "manifest.json")
    files = [snapshot.folder / name for name in manifest["files"]] + [snapshot.folder / "manifest.json"]
    size, name = sum(path.stat().st_size for path in files), snapshot.snapshot_id
    assert done == Publication(f"{URL}/snapshots/{name}", name, len(files), size, 0, 0, pointer_moved=True)


def test_each_file_is_read_back_before_the_pointer_is_put(s3: S3Server, snapshot: Snapshot) -> None:
    publish_to(URL, snapshot)
    before = s3.asked[: s3.asked.index(Asked("PUT", POINTER, None))]
    read = {asked.key for asked in before if asked.method == "GET"}
    assert {asked.key for asked in before if asked.method == "PUT"} <= read


def test_what_is_published_is_not_put_again(s3: S3Server, snapshot: Snapshot) -> None:
    publish_to(URL, snapshot)
    s3.asked.clear()
    done = publish_to(URL, snapshot)
    assert s3.put == []
    # Nor is it read again: its sizes are, in one listing.
    assert {asked.key for asked in s3.asked if asked.method == "GET" and asked.key} == {
        POINTER, f"nightly/snapshots/{snapshot.snapshot_id}/manifest.json"
    }  # fmt: skip
    assert (done.sent, done.copied, done.pointer_moved) == (0, 0, False)


def test_a_file_that_the_store_has_lost_is_put_again(s3: S3Server, snapshot: Snapshot) -> None:
    publish_to(URL, snapshot)
    key = f"nightly/snapshots/{snapshot.snapshot_id}/{DATABASE}"
    s3.client.delete_object(Bucket=BUCKET, Key=key)
    s3.asked.clear()
    assert publish_to(URL, snapshot).sent == 1
    assert [asked.key for asked in s3.put] == [key]


def test_a_file_that_did_not_change_is_copied_in_the_store_and_not_sent(
    s3: S3Server, two_homes: tuple[Path, Path]
) -> None:
    first, second = (required(Home(home)) for home in two_homes)
    publish_to(URL, first)
    earlier = s3.objects()
    s3.asked.clear()
    done = publish_to(URL, second)
    old = {(stated["sha256"], stated["size_bytes"]) for stated in first.manifest["files"].values()}
    same = {
        name for name, stated in second.manifest["files"].items() if (stated["sha256"], stated["size_bytes"]) in old
    }
    assert len(same) > 5
    folder = f"nightly/snapshots/{second.snapshot_id}"
    assert {asked.key for asked in s3.put if asked.copy_of} == {f"{folder}/{name}" for name in same}
    assert (done.copied, done.sent) == (len(same), len(second.manifest["files"]) + 1 - len(same))
    objects = s3.objects()
    for name, stated in second.manifest["files"].items():
        assert hashlib.sha256(objects[f"{folder}/{name}"]).hexdigest() == stated["sha256"]
    # Of what was there, the pointer alone changed.
    assert {key for key, content in earlier.items() if objects[key] != content} == {POINTER}
    assert json.loads(objects[POINTER])["snapshot_id"] == second.snapshot_id


def test_a_publication_that_is_killed_leaves_the_old_pointer_and_can_be_run_again(
    s3: S3Server, two_homes: tuple[Path, Path]
) -> None:
    first, second = (required(Home(home)) for home in two_homes)
    publish_to(URL, first)
    before = left = s3.objects()
    for moment in ("seventh file", POINTER):
        whole = _whole(left, second)
        s3.asked.clear()
        _publish_until(s3, two_homes[1], moment)
        # What had been put whole is not put again, and what was published is as it was.
        assert not whole & {asked.key for asked in s3.put}
        left = s3.objects()
        assert {key: left[key] for key in before} == before
        assert latest_of(Store(URL)).snapshot_id == first.snapshot_id
    assert len(_whole(left, second)) == len(second.manifest["files"])
    s3.asked.clear()
    done = publish_to(URL, second)
    assert [asked.key for asked in s3.put] == [POINTER]
    assert (done.sent, done.copied, done.pointer_moved) == (0, 0, True)
    assert latest_of(Store(URL)).snapshot_id == second.snapshot_id


def test_a_store_that_does_not_keep_what_it_is_given_gets_no_pointer(s3: S3Server, snapshot: Snapshot) -> None:
    key = f"nightly/snapshots/{snapshot.snapshot_id}/{DATABASE}"

    def flip(asked: Asked) -> None:
        if (asked.method, asked.key) == ("PUT", key):
            content = s3.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            s3.client.put_object(Bucket=BUCKET, Key=key, Body=content[:-1] + bytes([content[-1] ^ 1]))

    s3.after = flip
    with pytest.raises(StoreError, match=rf"{DATABASE}: it does not read back as it was put; publish again"):
        publish_to(URL, snapshot)
    assert POINTER not in s3.objects()
    # The next publication finds that it is another file, although its size is right.
    s3.after = None
    publish_to(URL, snapshot)
    assert latest_of(Store(URL)).cached().database.exists()


def test_a_pointer_elsewhere_that_cannot_be_read_is_put_right(s3: S3Server, snapshot: Snapshot) -> None:
    s3.client.put_object(Bucket=BUCKET, Key=POINTER, Body=b'{"path": "../../elsewhere"')
    assert publish_to(URL, snapshot).pointer_moved
    assert latest_of(Store(URL)).snapshot_id == snapshot.snapshot_id


def test_another_snapshot_of_the_same_name_is_not_overwritten(tmp_path: Path, snapshot: Snapshot) -> None:
    url = f"file://{tmp_path / 'store'}"
    publish_to(url, snapshot)
    copy = tmp_path / "home" / "snapshots" / snapshot.snapshot_id
    shutil.copytree(snapshot.folder, copy)
    (copy / "manifest.json").chmod(0o600)
    (copy / "manifest.json").write_text(json.dumps(snapshot.manifest), encoding="utf-8")
    with pytest.raises(SnapshotError, match="another snapshot of that name is published there"):
        publish_to(url, Snapshot(copy))


@pytest.mark.parametrize("what", ["a flipped byte", "closed terms"])
def test_a_snapshot_that_is_damaged_or_may_not_be_republished_stays_at_home(
    what: str, tmp_path: Path, known_home: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(known_home, home, symlinks=True)
    snapshot = required(Home(home))
    if what == "a flipped byte":
        _change(snapshot.database, lambda content: content[:-1] + bytes([content[-1] ^ 1]))
        expected = f"{DATABASE}: its bytes are not those that were published"
    else:
        _close(snapshot, "sol-execbench")
        expected = "the terms of sol-execbench do not let it be republished"
    said = refused(home, "publish", "--to", f"file://{tmp_path / 'store'}")
    assert expected in said
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("url", ["file://{}/store", "memory://kernelmart/{}"])
def test_any_store_takes_a_snapshot(url: str, tmp_path: Path, known_home: Path, snapshot: Snapshot) -> None:
    url = url.format(tmp_path)
    address, count = f"{url}/snapshots/{snapshot.snapshot_id}", len(snapshot.manifest["files"]) + 1
    lines = printed(known_home, "publish", "--to", url).splitlines()
    assert lines[0] == f"published: {address}"
    assert lines[1].startswith(f"{count} files sent (")
    again = printed(known_home, "publish", "--to", url).splitlines()
    assert again == [f"unchanged: {address}", f"0 files sent (0 B), 0 copied there, {count} there already"]
    assert latest_of(Store(url)).snapshot_id == snapshot.snapshot_id


def test_a_folder_that_is_published_to_reads_as_a_home(tmp_path: Path, known_home: Path) -> None:
    publish_to(f"file://{tmp_path}", required(Home(known_home)))
    words = ("sql", "select * from leaderboard", "--format", "json")
    assert printed(tmp_path, *words) == printed(known_home, *words)
    assert not list(tmp_path.rglob(".aside-*"))


@pytest.mark.parametrize(
    "url", ["file://", "file:///", "file://relative/x", "local://x", "memory://", "s3://", "ftp://"]
)
def test_a_url_that_names_no_folder_is_no_store(
    url: str, tmp_path: Path, known_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = f"{url}: it names no folder; a folder of this machine begins with file:///"
    assert refused(known_home, "publish", "--to", url) == refused(url, "top", BOARD) == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "/snapshots", "/there/../tables"])
def test_a_warehouse_is_not_published_to_itself(below: str, known_home: Path) -> None:
    url = f"file://{known_home}{below}"
    assert refused(known_home, "publish", "--to", url).endswith("this is the warehouse itself; name a folder elsewhere")


def test_the_target_may_be_in_the_environment(
    tmp_path: Path, known_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Missing option '--to'" in refused(known_home, "publish", code=2)
    assert "it is no URL" in refused(known_home, "publish", "--to", str(tmp_path), code=2)
    monkeypatch.setenv("KERNELMART_PUBLISH_URL", f"file://{tmp_path}/there")
    printed(known_home, "publish")
    assert (tmp_path / "there" / "snapshots" / "latest.json").exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://somebody:hunter2@127.0.0.1:1/x", "ftp://***@127.0.0.1:1/x"),
        ("ftp://somebody:hun/ter2@127.0.0.1:1/x", "ftp://***@127.0.0.1:1/x"),
        ("http://127.0.0.1:1/x?sig=hunter2&se=1", "http://127.0.0.1:1/x"),
        ("unheard-of://hunter2@host/x#hunter2", "unheard-of://***@host/x"),
        ("simplecache::ftp://somebody:hunter2@127.0.0.1:1/x", "simplecache::ftp://***@127.0.0.1:1/x"),
    ],
)
def test_no_error_holds_what_a_url_keeps_secret(url: str, shown: str, known_home: Path) -> None:
    for result in (run(known_home, "publish", "--to", url), run(url, "top", BOARD)):
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith(f"Error: {shown}/snapshots/")
        assert "hun" not in result.output.replace("unheard", "")
    assert "hunter2" not in repr(Store(url))


@pytest.mark.usefixtures("s3")
def test_no_line_of_a_publication_holds_the_credentials(known_home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    done = run(known_home, "publish", "--to", URL)
    failed = run(known_home, "publish", "--to", "s3://nobody-made-this/x")
    assert (done.exit_code, failed.exit_code) == (0, 1)
    assert "The specified bucket does not exist" in failed.stderr
    assert SECRET not in done.output + failed.output + caplog.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://bucket/a@b/c", "s3://bucket/a@b/c"),
        ("https://key@host/x", "https://***@host/x"),
        ("see https://u:p@host/x?y=z, or not", "see https://***@host/x?*** or not"),
        ("./data", "./data"),
    ],
)
def test_urls_are_shown_without_user_and_query(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://b/x", True), ("simplecache::s3://b", True), ("file:///srv", True), ("data", False), ("/a:b", False),
     ("c:/x", False), ("s3:x", False)],
)  # fmt: skip
def test_a_url_is_told_from_a_folder(text: str, expected: bool) -> None:
    assert is_url(text) is expected


def _publish_until(s3: S3Server, home: Path, moment: str) -> None:
    """Publish in a process that is killed when it asks to put a file, which the server then never does."""
    command = "import sys; sys.stdin.read(1); from pipelines.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", command, "publish", "--to", URL, "--home", str(home)],
        env={**os.environ, **settings(s3)}, stdin=subprocess.PIPE, cwd=Path(__file__).parent.parent,
    ) as process:  # fmt: skip

        def kill(asked: Asked) -> None:
            if asked.method == "PUT" and (asked.key == moment or (moment == "seventh file" and len(s3.put) == 7)):
                process.kill()
                process.wait()
                raise ConnectionAbortedError

        s3.before = kill
        process.communicate(b"x", timeout=300)
    s3.before = None
    assert process.returncode == -signal.SIGKILL


def _whole(objects: dict[str, bytes], snapshot: Snapshot) -> set[str]:
    """Keys of the files of a snapshot that are in the store, whole."""
    digests = {key: hashlib.sha256(content).hexdigest() for key, content in objects.items()}
    stated = snapshot.manifest["files"].items()
    keys = {f"nightly/snapshots/{snapshot.snapshot_id}/{name}": about["sha256"] for name, about in stated}
    return {key for key, digest in keys.items() if digests.get(key) == digest}


def _change(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.chmod(0o600)
    path.write_bytes(how(path.read_bytes()))


def _close(snapshot: Snapshot, source: str) -> None:
    """Make a source of a snapshot one that may not be republished, as if it had been published so."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    (path,) = snapshot.parquet("sources")
    rows = pq.read_table(path)
    kept = pc.and_(rows["redistributable"], pc.not_equal(rows["source"], source))
    rows = rows.set_column(rows.schema.get_field_index("redistributable"), rows.schema.field("redistributable"), kept)
    path.chmod(0o600)
    pq.write_table(pa.table(rows), path)
    manifest: dict[str, Any] = snapshot.manifest
    stated = manifest["files"][path.relative_to(snapshot.folder).as_posix()]
    stated.update(sha256=sha256(path), size_bytes=path.stat().st_size)
    _change(snapshot.folder / "manifest.json", lambda _: json.dumps(manifest).encode())
    pointer = snapshot.folder.parent / "latest.json"
    named = {**json.loads(pointer.read_text()), "manifest_sha256": sha256(snapshot.folder / "manifest.json")}
    _change(pointer, lambda _: json.dumps(named).encode())
    pointer.with_name("history.json").unlink()
