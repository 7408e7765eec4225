"""Originals are kept byte for byte, once, under the digest of all their bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from warehouse import files
from warehouse.errors import HomeError, UnreadableError
from warehouse.raw import Collection, Range, RawFile, RawStore
from warehouse.sealed import sealed
from warehouse.upkeep import damage, drop, needed, unneeded

THEN = datetime(2025, 6, 1, 9, 11, 14, 635_999, UTC)
CONTENT = bytes(range(256)) * 9000
DIGEST = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> RawStore:
    return RawStore(tmp_path / "raw")


def original(folder: Path, name: str, content: bytes = CONTENT) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def objects(store: RawStore) -> list[str]:
    return sorted(path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file())


def test_a_kept_file_is_a_copy_named_by_its_digest(tmp_path: Path, store: RawStore) -> None:
    path = original(tmp_path, "a.parquet")
    kept = store.keep(path, "a.parquet", THEN)
    assert (kept.content_digest, kept.size_bytes, kept.locator, kept.fetched_at) == (
        DIGEST,
        len(CONTENT),
        "a.parquet",
        THEN,
    )
    assert kept.path == store.root / "objects" / DIGEST[7:9] / DIGEST[7:]
    path.write_bytes(b"changed since")
    assert kept.path.read_bytes() == CONTENT


def test_equal_bytes_are_kept_once(tmp_path: Path, store: RawStore) -> None:
    first = store.keep(original(tmp_path, "a"), "a", THEN)
    inode = first.path.stat().st_ino
    second = store.keep(original(tmp_path, "b"), "b", THEN)
    assert (second.content_digest, second.path.stat().st_ino) == (DIGEST, inode)
    assert objects(store) == [f"objects/{DIGEST[7:9]}/{DIGEST[7:]}"]
    store.keep(original(tmp_path, "empty", b""), "empty", THEN)
    assert len(objects(store)) == 2


def test_an_object_cut_short_is_kept_anew(tmp_path: Path, store: RawStore) -> None:
    path = original(tmp_path, "a")
    kept = store.keep(path, "a", THEN)
    kept.path.write_bytes(CONTENT[:100])
    assert store.keep(path, "a", THEN).path.read_bytes() == CONTENT


def test_a_flipped_byte_is_found_and_its_object_named(tmp_path: Path, store: RawStore) -> None:
    kept = store.keep(original(tmp_path, "a"), "a", THEN)
    store.keep(original(tmp_path, "b", b"another"), "b", THEN)
    assert list(store.damaged()) == []
    flipped = bytearray(CONTENT)
    flipped[1_234_567] ^= 1
    kept.path.write_bytes(flipped)
    assert list(store.damaged()) == [(kept.path, hashlib.sha256(flipped).hexdigest())]


def test_a_file_that_cannot_be_read_is_named_and_leaves_nothing(tmp_path: Path, store: RawStore) -> None:
    with pytest.raises(HomeError, match=r"^gone\.parquet: cannot be kept in .*raw: No such file"):
        store.keep(tmp_path / "gone.parquet", "gone.parquet", THEN)
    with pytest.raises(HomeError, match="directory"):
        store.keep(tmp_path, "folder", THEN)
    assert objects(store) == []


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = RawStore(original(tmp_path, "file"))
    with pytest.raises(HomeError, match="a: cannot be kept in"):
        blocked.keep(original(tmp_path, "a"), "a", THEN)


def test_a_folder_is_collected_by_patterns_with_locators_relative_to_it(tmp_path: Path, store: RawStore) -> None:
    folder = tmp_path / "dumps"
    for name in ("b.parquet", "a.parquet", "kernels/1.json", "notes.txt"):
        original(folder, name, name.encode())
    (folder / "c.parquet").mkdir()
    collection = store.collect_folder("demo", folder, ("*.parquet", "**/*.json", "a.*"))
    assert [file.locator for file in collection.files] == ["a.parquet", "b.parquet", "kernels/1.json"]
    assert [file.path.read_bytes() for file in collection.files] == [b"a.parquet", b"b.parquet", b"kernels/1.json"]
    assert collection.revision is None
    assert collection.inputs() == [
        {"locator": file.locator, "content_digest": file.content_digest} for file in collection.files
    ]
    shuffled = Collection("demo", collection.files[::-1])
    assert shuffled.inputs() == collection.inputs()
    assert store.collect_folder("demo", tmp_path / "nothing", ("*",)).files == ()


def test_last_good_files_are_remembered_per_source(tmp_path: Path, store: RawStore) -> None:
    assert store.last_good("demo") is None
    kept = replace(store.keep(original(tmp_path, "a"), "a", THEN), revision="abc123")
    collection = Collection("demo", (kept,), ("demo: b is old",))
    store.remember(collection)
    assert store.last_good("demo") == collection
    assert collection.revision == "abc123"
    assert store.last_good("other") is None
    store.remember(Collection("demo", ()))
    assert store.last_good("demo") == Collection("demo", ())


def test_a_record_says_nothing_of_where_a_home_lies(tmp_path: Path, store: RawStore) -> None:
    kept = store.keep_now(original(tmp_path, "a"), "a")
    record = Collection("demo", (kept,)).as_record()
    assert str(tmp_path) not in str(record)
    moved = RawStore(tmp_path / "moved")
    store.root.rename(moved.root)
    (again,) = moved.collection(record).files
    assert again == replace(kept, path=moved.path(DIGEST))
    assert again.path.read_bytes() == CONTENT


def test_bytes_and_pieces_are_kept_as_files_are(tmp_path: Path, store: RawStore) -> None:
    kept = store.keep_bytes(CONTENT, "api/kernels", THEN, "r1")
    assert kept == replace(store.keep(original(tmp_path, "a"), "api/kernels", THEN), revision="r1")
    assert kept.verified
    assert store.keep_pieces([CONTENT[:7], b"", CONTENT[7:]], "a") == (DIGEST, len(CONTENT))
    assert objects(store) == [f"objects/{DIGEST[7:9]}/{DIGEST[7:]}"]


def test_what_is_not_accepted_or_breaks_off_is_not_kept(store: RawStore) -> None:
    def refuse(digest: str, size: int) -> None:
        assert (digest, size) == (DIGEST, len(CONTENT))
        raise UnreadableError("not that")

    def broken() -> Iterator[bytes]:
        yield CONTENT
        raise UnreadableError("cut")

    with pytest.raises(UnreadableError, match="not that"):
        store.keep_pieces([CONTENT], "a", refuse)
    with pytest.raises(UnreadableError, match="cut"):
        store.keep_pieces(broken(), "a")
    assert objects(store) == []


# --- fetch records ----------------------------------------------------------------------------------------------


def recorded(store: RawStore, *parts: tuple[int, int], locator: str = "a.parquet") -> RawFile:
    """A fetch record of `CONTENT` with these parts of it, each from a byte to before another."""
    ranges = []
    for start, end in parts:
        digest, size = store.keep_pieces([CONTENT[start:end]], locator)
        ranges.append(Range(start, size, digest))
    file = RawFile(locator, store.path(DIGEST), DIGEST, len(CONTENT), THEN, "r1", "e1", tuple(ranges), "reader/1")
    store.keep_record(file)
    return file


def test_a_record_reads_as_the_file_where_its_bytes_are_kept(store: RawStore) -> None:
    last = len(CONTENT)
    file = recorded(store, (10, 20), (20, 1000), (500, 5000), (last - 8, last))
    assert not file.verified
    with file.open() as content:
        assert content.size() == last
        for start, count in ((10, 10), (15, 600), (20, 4980), (4999, 1), (499, 2), (last - 8, 8), (last - 1, 100)):
            content.seek(start)
            assert content.read(count) == CONTENT[start : start + count]
            assert content.tell() == min(last, start + count)
        content.seek(-8, 2)
        assert content.read() == CONTENT[-8:]
        assert content.read(1) == b""
        content.seek(last + 7)
        assert content.read(1) == b""


@pytest.mark.parametrize(("start", "count"), [(0, 1), (9, 2), (4990, 20), (5000, 1), (19, 2_000_000)])
def test_a_read_outside_the_kept_ranges_names_the_file(store: RawStore, start: int, count: int) -> None:
    file = recorded(store, (10, 20), (20, 5000))
    with file.open() as content:
        content.seek(start)
        with pytest.raises(UnreadableError, match=r"^a\.parquet: bytes \d+ to \d+ of it are not kept; pull it again$"):
            content.read(count)


def test_a_range_that_is_gone_or_cut_short_names_the_file(store: RawStore) -> None:
    file = recorded(store, (0, 100))
    (path,) = file.objects
    path.write_bytes(CONTENT[:10])
    with file.open() as content, pytest.raises(UnreadableError, match=r"^a\.parquet: a kept range of it is cut short"):
        content.read(100)
    path.unlink()
    with file.open() as content, pytest.raises(UnreadableError, match=r"^a\.parquet: a kept range of it is gone"):
        content.read(100)


def test_a_record_is_found_by_the_files_digest_and_listed_with_its_source(tmp_path: Path, store: RawStore) -> None:
    file = recorded(store, (0, 100), (100, 200))
    assert store.record(DIGEST) == file
    assert store.record("sha256:" + "0" * 64) is None
    store.remember(Collection("demo", (file,)))
    assert store.last_good("demo") == Collection("demo", (file,))
    stated = json.loads((store.root / "records" / f"{DIGEST[7:]}.json").read_text())
    assert stated["ranges"][1] == {"offset": 100, "length": 100, "digest": file.ranges[1].digest}
    assert {name: stated[name] for name in ("content_digest", "size_bytes", "etag", "revision", "locator")} == {
        "content_digest": DIGEST, "size_bytes": len(CONTENT), "etag": "e1", "revision": "r1", "locator": "a.parquet"
    }  # fmt: skip
    assert str(tmp_path) not in json.dumps(stated)
    for damaged in (b"", b"{", b"[]", b"{}", json.dumps({**stated, "content_digest": "sha256:" + "1" * 64}).encode()):
        files.write_bytes(store.root / "records" / f"{DIGEST[7:]}.json", damaged)
        assert store.record(DIGEST) is None


def test_a_list_from_before_there_were_records_is_read(tmp_path: Path, store: RawStore) -> None:
    kept = store.keep(original(tmp_path, "a"), "a", THEN)
    old = {key: value for key, value in kept.as_record().items() if key not in ("etag", "ranges", "reader")}
    assert store.from_record(old) == kept


@pytest.mark.parametrize("whole", [True, False])
def test_a_damaged_object_is_removed_so_that_it_is_fetched_anew(store: RawStore, whole: bool) -> None:
    file = store.keep_bytes(CONTENT, "a", THEN) if whole else recorded(store, (0, 100), (100, 200), locator="a")
    file.require_whole()
    assert file.is_whole
    path = list(file.objects)[-1]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert not file.is_whole
    with pytest.raises(
        UnreadableError, match=r"^a: its original in the raw store is damaged or gone; ingest it again$"
    ):
        file.require_whole()
    assert [one.is_file() for one in file.objects] == [True] * (len(file.objects) - 1) + [False]


# --- upkeep -----------------------------------------------------------------------------------------------------


def inputs_of(*kept: RawFile) -> dict[str, dict[str, Any]]:
    return {"demo": {"stale": False, "files": Collection("demo", kept).inputs()}}


def rows_of(*kept: RawFile) -> list[dict[str, Any]]:
    names = ("locator", "content_digest", "size_bytes", "fetched_at", "revision", "verified")
    return [{"source": "demo", **{name: getattr(file, name) for name in names}} for file in kept]


def test_what_snapshots_last_good_files_or_walks_need_stays_and_all_else_goes(store: RawStore) -> None:
    record = recorded(store, (0, 100), (100, 200))
    published, latest, walked, orphan = (store.keep_bytes(bytes([n]) * 9, "x", THEN) for n in range(4))
    other = replace(
        record, content_digest="sha256:" + "ab" * 32, ranges=(store_range(store, b"other"), record.ranges[0])
    )
    store.keep_record(other)
    store.remember(Collection("demo", (latest,)))
    walks = {"kernels": {"7": [{"digest": walked.content_digest}]}}
    files.write_json(store.root / "walks" / "demo.json", sealed(walks))
    (store.root / "downloads").mkdir()
    (store.root / "downloads" / "part").write_bytes(b"123")
    found = unneeded(store, needed(store, [inputs_of(published), inputs_of(record)]))
    assert {(one.path, one.size_bytes) for one in found} == {
        (orphan.path, 9),
        (store.path(other.ranges[0].digest), 5),
        (store.root / "records" / f"{'ab' * 32}.json", (store.root / "records" / f"{'ab' * 32}.json").stat().st_size),
        (store.root / "downloads", 3),
    }
    drop(found)
    assert unneeded(store, needed(store, [inputs_of(published), inputs_of(record)])) == []
    assert list(damage(store)) == []
    for file in (record, published, latest, walked):
        file.require_whole()


def store_range(store: RawStore, data: bytes) -> Range:
    digest, size = store.keep_pieces([data], "a")
    return Range(0, size, digest)


@pytest.mark.parametrize("name", ["sources/demo.json", "walks/demo.json"])
def test_nothing_is_dropped_while_it_is_unknown_what_is_needed(store: RawStore, name: str) -> None:
    files.write_bytes(store.root / name, b"{")
    with pytest.raises(HomeError, match=r"demo\.json: cannot be read, so that what it needs is unknown"):
        needed(store, [])


def test_damage_names_objects_records_and_lists(store: RawStore) -> None:
    record = recorded(store, (0, 100), (100, 200))
    whole = store.keep_bytes(CONTENT, "whole", THEN)
    store.remember(Collection("demo", (whole,)))
    assert list(damage(store)) == []
    first, second = record.objects
    first.write_bytes(b"?")
    second.unlink()
    whole.path.unlink()
    files.write_bytes(store.root / "records" / f"{'0' * 64}.json", b"{}")
    files.write_bytes(store.root / "sources" / "other.json", b"{}")
    assert list(damage(store)) == [
        f"{first}: its bytes have the digest {hashlib.sha256(b'?').hexdigest()}",
        f"{store.root}/records/{'0' * 64}.json: the fetch record cannot be read",
        f"{store.root}/records/{DIGEST[7:]}.json: {second}, which a.parquet needs, is gone",
        f"{store.root}/sources/demo.json: {whole.path}, which whole needs, is gone",
        f"{store.root}/sources/other.json: the list of the source's files cannot be read",
    ]


def test_the_files_of_a_snapshot_are_found_as_they_were_or_named(store: RawStore) -> None:
    later = datetime(2026, 1, 1, tzinfo=UTC)
    record = recorded(store, (0, 100))
    whole = replace(store.keep_bytes(b"abc", "b", THEN), revision="r0")
    rows = rows_of(record, whole)
    inputs = inputs_of(record, whole)
    store.keep_record(replace(record, fetched_at=later, locator="renamed", revision="r9"))
    ((found,), lacking) = store.of_snapshot(inputs, rows)
    assert (found.source, found.files, found.stale, lacking) == ("demo", (record, whole), (), [])
    store.keep_bytes(CONTENT, "a.parquet", later)
    assert store.of_snapshot(inputs, rows)[0][0].files[0] == record
    inputs["demo"]["stale"] = True
    assert store.of_snapshot(inputs, rows)[0][0].stale == ("demo: it was stale when that snapshot was made",)
    whole.path.write_bytes(b"abd")
    next(iter(record.objects)).unlink()
    assert store.of_snapshot(inputs, rows)[1] == [f"demo: a.parquet ({DIGEST})", f"demo: b ({whole.content_digest})"]
    assert store.of_snapshot(inputs, [])[1] == store.of_snapshot(inputs, rows)[1]


def test_what_is_no_digest_is_never_a_path(store: RawStore, tmp_path: Path) -> None:
    victim = original(tmp_path, "victim.txt")
    kept = store.keep(original(tmp_path, "a.parquet"), "a.parquet", THEN)
    store.remember(Collection("s", (kept,)))
    listing = store.root / "sources" / "s.json"
    for name in (f"sha256:{victim}", "../../victim.txt", "sha256:" + "0" * 63, 7):
        record = json.loads(listing.read_text())
        record["files"][0]["content_digest"] = name
        listing.write_text(json.dumps(record))
        assert store.last_good("s") is None
    for ranges in ([{"offset": -5, "length": 9, "digest": DIGEST}], [{"offset": "7", "length": 9, "digest": DIGEST}],
                   [{"offset": 0, "length": len(CONTENT) + 1, "digest": DIGEST}],
                   [{"offset": 0, "length": 1, "digest": f"sha256:{victim}"}]):  # fmt: skip
        with pytest.raises(ValueError, match=r"range lies outside|is no digest"):
            store.from_record({**kept.as_record(), "ranges": ranges})
    assert victim.read_bytes() == CONTENT
