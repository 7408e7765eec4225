"""Originals are kept byte for byte, once, under the digest of all their bytes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from warehouse.errors import HomeError
from warehouse.raw import Collection, RawStore

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
