"""`kernelmart raw` shows what is kept, finds damage, and drops only what nothing needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import as_json, printed, refused, run
from tests.conftest import SmallHome
from warehouse.home import Home
from warehouse.raw import RawStore
from warehouse.snapshots import required


@pytest.fixture
def home(small_home: SmallHome, tmp_path: Path) -> Path:
    copy = tmp_path / "home"
    shutil.copytree(small_home.home, copy, symlinks=True, ignore=shutil.ignore_patterns("tables", "dagster"))
    return copy


def test_the_list_has_every_file_that_the_last_ingest_used(home: Path) -> None:
    store = RawStore(home / "raw")
    used = [file for source in store.sources if (kept := store.last_good(source)) for file in kept.files]
    listed = as_json(home, "raw", "list")
    assert {(row["source"], row["locator"]) for row in listed["files"]} >= {
        ("gpumode-kernelbot", "submissions.parquet"),
        ("sol-execbench", "kernels.json"),
    }
    assert sorted(row["content_digest"] for row in listed["files"]) == sorted(file.content_digest for file in used)
    assert all(row["verified"] and row["kept_bytes"] == row["size_bytes"] for row in listed["files"])
    assert listed["objects"] == len({file.content_digest for file in used})
    page = printed(home, "raw", "list", "--source", "gpumode-kernelbot")
    assert "submissions.parquet" in page
    assert "kernels.json" not in page
    assert f"{listed['objects']} objects" in page
    assert "nothing is kept of a source 'x'" in refused(home, "raw", "list", "--source", "x", code=2)


def test_verify_names_what_is_damaged_and_fails(home: Path) -> None:
    count = as_json(home, "raw", "list")["objects"]
    assert printed(home, "raw", "verify") == f"all {count} objects are as they were kept\n"
    path = next((home / "raw" / "objects").glob("??/*"))
    path.write_bytes(path.read_bytes() + b"?")
    result = run(home, "raw", "verify")
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if line.startswith(f"{path}: its bytes have the digest ")]
    assert refused(home, "raw", "verify").endswith("1 thing damaged or gone; remove what is damaged and ingest again")


def test_prune_drops_only_what_nothing_needs(home: Path) -> None:
    store = RawStore(home / "raw")
    manifest = required(Home(home)).manifest
    for source in store.sources:
        (store.root / "sources" / f"{source}.json").unlink()
    with required(Home(home)).open() as connection:
        rows = connection.sql("select * from source_files").to_arrow_table().to_pylist()
    before, lacking = store.of_snapshot(manifest["inputs"], rows)
    assert lacking == []
    assert sum(len(collection.files) for collection in before) == len(rows)
    orphan = store.keep_bytes(b"nobody needs this", "orphan", before[0].files[0].fetched_at)
    would = printed(home, "raw", "prune", "--dry-run")
    assert would == f"would drop {orphan.path} (17 B)\n1 thing, 17 B, not needed\n"
    assert orphan.path.exists()
    assert printed(home, "raw", "prune") == f"drops {orphan.path} (17 B)\n1 thing, 17 B, dropped\n"
    assert not orphan.path.exists()
    assert printed(home, "raw", "prune") == "0 things, 0 B, dropped\n"
    assert store.of_snapshot(manifest["inputs"], rows) == (before, [])
    with Home(home).locked():
        assert "another ingest holds this home" in refused(home, "raw", "prune")


def test_a_snapshot_that_says_nothing_of_its_inputs_keeps_prune_from_dropping(home: Path) -> None:
    folder = required(Home(home)).folder
    folder.chmod(0o755)
    (folder / "manifest.json").chmod(0o644)
    (folder / "manifest.json").write_text("{")
    before = sorted((home / "raw").rglob("*"))
    assert "manifest" in refused(home, "raw", "prune")
    assert sorted((home / "raw").rglob("*")) == before


def test_a_home_without_originals_is_one_line(tmp_path: Path) -> None:
    for words in (("list",), ("verify",), ("prune",)):
        assert "nothing is kept there yet" in refused(tmp_path, "raw", *words)


def test_prune_believes_no_list_that_was_altered(home: Path) -> None:
    objects = sorted((home / "raw" / "objects").glob("??/*"))
    listing = home / "raw" / "sources" / "sol-execbench.json"
    stated = listing.read_text()
    listing.write_text("{}")
    assert "the list of the source's files cannot be read; nothing is dropped" in refused(home, "raw", "prune")
    listing.write_text(stated)
    manifest = required(Home(home)).folder / "manifest.json"
    for path in (manifest.parent, manifest):
        path.chmod(0o755)
    value = json.loads(manifest.read_text())
    value["inputs"]["gpumode-kernelbot"]["files"] = []
    manifest.write_text(json.dumps(value))
    assert "it is not the manifest that was published; nothing is dropped" in refused(home, "raw", "prune")
    assert sorted((home / "raw" / "objects").glob("??/*")) == objects
