"""Nights that read the submissions' sources, and nights after them that do not: nothing that was found is lost."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.kernelbot.build import build_tables, read_files
from assets.kernelbot.terms import SOURCE
from pipelines import sources
from pipelines.ingest import Outcome, ingest
from pipelines.resources import Request
from replica.corpus import write_corpus
from replica.server import Replica
from tests.commands import as_json, printed, refused
from warehouse import snapshots
from warehouse.elsewhere import latest_of, publish_to
from warehouse.home import Home
from warehouse.parts import PartStore
from warehouse.raw import Collection, RawStore
from warehouse.snapshots import Snapshot
from warehouse.stores import Store

CHANGED = "nvidia_nvfp4_submissions.parquet"
# Of both families, with sources as text; all that a night takes.
USED = ("leaderboards.parquet", "deduplicated_submissions.parquet", "amd_1_1m_competition_submissions.parquet", CHANGED)
TABLES = ("artifacts", "techniques", "changes", "artifact_families", "artifact_texts", "change_texts")
HOSTILE = [
    b"\xff\xfe\x00 no text at all \x1b[31m",
    b"\x00" * 64,
    b"x" * 200_000,
    "# \u202e\ud7ff\r\nimport torch\r\n".encode(),
    b"raise SystemExit('executed')\n__import__('os').abort()\n",
]


@dataclass(frozen=True)
class Nights:
    """A home after two nights that pulled the same files, mirror and none; with how each ended."""

    home: Path
    folder: Path
    code: dict[int, bytes]
    outcomes: list[Outcome]

    @property
    def mirrored(self) -> Snapshot:
        return snapshots.named(Home(self.home), self.outcomes[0].snapshot_id)

    def files(self) -> Collection:
        collection = RawStore(self.home / "raw").last_good(SOURCE)
        assert collection is not None
        return collection


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    folder = write_corpus(tmp_path_factory.mktemp("corpus"), seed=1, scale=0.001, code=True).folder
    for path in (folder / "kernelbot").iterdir():
        if path.name not in USED:
            path.unlink()
    code = hostile(folder / "kernelbot" / CHANGED)
    home = tmp_path_factory.mktemp("nights")
    with Replica(folder) as replica, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", replica.hub_endpoint)
        asked = [Request(code=code, sources=[SOURCE]) for code in ("mirror", "none")]
        return Nights(home, folder, code, [ingest(Home(home), request) for request in asked])


@dataclass(frozen=True)
class Tables:
    """Tables of one way to build them."""

    store: PartStore
    files: dict[str, list[str]]

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [row for file in self.files[name] for row in parquet_rows(self.store.root / file)]


@pytest.fixture(scope="module")
def indexed(nights: Nights, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables of an index night in a home of its own."""
    home = Home(tmp_path_factory.mktemp("indexed"))
    store = PartStore(home.tables)
    files = read_files(store, nights.files(), None, "index")
    return Tables(store, build_tables(store, files, home.temporary, "index"))


def hostile(path: Path) -> dict[int, bytes]:
    """Have a file's sources be bytes, the first of them such as nobody should trust; all by submission."""
    table = pq.read_table(path)
    code = [
        None if text is None else text if isinstance(text, bytes) else text.encode() for text in
        table["code"].to_pylist()
    ]  # fmt: skip
    numbers = table["submission_id"].to_pylist()
    chosen = dict(zip(dict.fromkeys(numbers), HOSTILE, strict=False))
    code = [chosen.get(number, text) for number, text in zip(numbers, code, strict=True)]
    pq.write_table(table.set_column(table.schema.get_field_index("code"), "code", pa.array(code, pa.binary())), path)
    return {number: text for number, text in zip(numbers, code, strict=True) if text}


def damage(path: Path) -> None:
    """Spoil the sources of a file, and nothing else."""
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    [code] = [column for column in columns if column.path_in_schema == "code"]
    content = bytearray(path.read_bytes())
    middle = (code.dictionary_page_offset or code.data_page_offset) + code.total_compressed_size // 2
    content[middle : middle + 64] = b"\xff" * 64
    path.write_bytes(content)


def rows(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    return [row for path in snapshot.parquet(table) for row in parquet_rows(path)]


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path, partitioning=None).to_pylist()
    return found


def identities(runs: Iterable[dict[str, Any]]) -> set[str]:
    return {row["identity"] for row in runs if row["implementation_digest"] is not None}


def ordered(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: json.dumps(row, default=repr))


def test_a_pull_for_sources_fetches_whole_files(nights: Nights) -> None:
    assert [outcome.stale for outcome in nights.outcomes] == [[], []]
    assert all(file.verified for file in nights.files().files)


def test_an_index_night_finds_out_what_the_sources_are_and_keeps_none(nights: Nights, indexed: Tables) -> None:
    artifacts = indexed.rows("artifacts")
    assert len(artifacts) > len(set(nights.code.values())) > len(HOSTILE)
    assert {row["text_stored"] for row in artifacts} == {False}
    assert (indexed.files["artifact_texts"], indexed.files["change_texts"]) == ([], [])
    assert identities(indexed.rows("runs")) == {"final"}
    for name in ("techniques", "changes", "artifact_families"):
        assert len(indexed.rows(name)) > 0
        assert ordered(indexed.rows(name)) == ordered(rows(nights.mirrored, name))


def test_a_mirror_night_keeps_every_text_to_the_byte(nights: Nights, indexed: Tables) -> None:
    snapshot = nights.mirrored
    artifacts = {row["source_digest"] for row in rows(snapshot, "artifacts")}
    assert artifacts == {row["source_digest"] for row in rows(snapshot, "artifact_texts")}
    assert artifacts == {row["source_digest"] for row in indexed.rows("artifacts")}
    assert identities(rows(snapshot, "runs")) == {"final"}
    texts = sources.texts_of(snapshot)
    digests = {row["submission_id"]: row["source_digest"] for row in rows(snapshot, "submissions")}
    known = {number: text for number, text in nights.code.items() if number in digests}
    assert set(HOSTILE) <= set(known.values())
    for number, text in known.items():
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        assert digests[number] == digest
        assert sources.source_text({"artifact": {"source_digest": digest}}, texts) == text


def test_the_texts_are_described_as_the_tables_are(nights: Nights) -> None:
    described = json.loads((nights.mirrored.folder / "datapackage.json").read_text(encoding="utf-8"))["resources"]
    paths = {resource["name"]: resource["path"] for resource in described}
    for name in ("artifact_texts", "change_texts"):
        assert paths[name] == [f"parquet/{name}/{path.name}" for path in nights.mirrored.parquet(name)]
        assert paths[name]
    croissant = json.loads((nights.mirrored.folder / "croissant.json").read_text(encoding="utf-8"))["recordSet"]
    assert {record_set["@id"] for record_set in croissant} >= {"artifact_texts", "change_texts"}


def test_the_texts_are_not_in_the_database(nights: Nights) -> None:
    with nights.mirrored.open() as connection:
        names = {name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()}
    assert names & set(TABLES) == {"artifacts", "techniques", "changes", "artifact_families"}


def test_a_night_that_reads_no_source_loses_nothing_and_publishes_nothing(nights: Nights) -> None:
    mirrored, after = nights.outcomes
    assert mirrored.published
    assert (after.published, after.snapshot_id, after.stale) == (False, mirrored.snapshot_id, [])


def test_what_was_found_stays_though_the_file_has_changed(nights: Nights, tmp_path: Path) -> None:
    """The file lacks a submission, and what it has of sources is not read."""
    before = nights.mirrored
    home = Home(nights.home)
    raw, store = RawStore(tmp_path / "raw"), PartStore(home.tables)
    shutil.copytree(nights.folder / "kernelbot", tmp_path / "kernelbot")
    path = tmp_path / "kernelbot" / CHANGED
    table = pq.read_table(path)
    ids = table["submission_id"].to_pylist()
    gone = ids[0]
    kept = table.filter(pa.array([number != gone for number in ids]))
    pq.write_table(kept.set_column(kept.schema.get_field_index("code"), "code", pa.nulls(len(kept), pa.binary())), path)
    collection = read_files(store, raw.collect_folder(SOURCE, tmp_path / "kernelbot", ("*.parquet",)), None)
    made = build_tables(store, collection, home.temporary, None, before)
    now = {name: Tables(store, made).rows(name) for name in (*TABLES, "runs")}
    lost = {row["source_digest"] for row in rows(before, "submissions") if row["submission_id"] == gone}
    for name in ("artifacts", "techniques", "artifact_texts"):
        assert ordered(now[name]) == ordered(row for row in rows(before, name) if row["source_digest"] not in lost)
    assert identities(now["runs"]) == {"final"}
    diffs = {row["submission_key"] for row in rows(before, "change_texts")}
    assert {row["submission_key"] for row in now["change_texts"]} >= {key for key in diffs if str(gone) not in key} - {
        row["submission_key"]
        for row in rows(before, "changes")
        if row["previous_submission_key"].endswith(f":{gone}")
    }  # fmt: skip


def test_damage_in_a_source_gives_way_to_the_last_good_file(nights: Nights, tmp_path: Path) -> None:
    store = PartStore(Home(nights.home).tables)
    last_good = nights.files()
    shutil.copytree(nights.folder / "kernelbot", tmp_path / "kernelbot")
    path = tmp_path / "kernelbot" / CHANGED
    damage(path)
    damaged = RawStore(tmp_path / "raw").collect_folder(SOURCE, tmp_path / "kernelbot", ("*.parquet",))
    assert read_files(store, damaged, last_good).stale == ()
    collection = read_files(store, damaged, last_good, "index")
    assert [line.partition(":")[0] for line in collection.stale] == [CHANGED]
    digests = {file.locator: file.content_digest for file in last_good.files}
    assert {file.locator: file.content_digest for file in collection.files} == digests


def test_a_submission_is_shown_with_its_source(nights: Nights) -> None:
    number = next(number for number, text in nights.code.items() if text not in HOSTILE)
    record = as_json(nights.home, "show", f"submission/{number}")
    [submission] = record["submissions"]
    assert submission["source_text"].encode() == nights.code[number]
    assert submission["artifact"]["text_stored"]
    assert printed(nights.home, "show", f"submission/{number}", "--source").startswith("#!POPCORN leaderboard ")
    assert "mirrored, licence unknown" in printed(nights.home, "show", f"submission/{number}")
    binary = next(number for number, text in nights.code.items() if text == HOSTILE[0])
    assert printed(nights.home, "show", f"submission/{binary}", "--source").startswith(r"\xff\xfe\x00 no text at all")
    assert "alone" in refused(nights.home, "show", f"submission/{number}", "--source", "--json", code=2)


def test_a_source_that_is_published_elsewhere_is_shown_from_there(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_CACHE", str(tmp_path / "cache"))
    url = f"file://{tmp_path / 'store'}"
    publish_to(url, nights.mirrored)
    number = next(
        row["submission_id"] for row in rows(nights.mirrored, "submissions") if row["source_digest"] is not None
    )
    shown = printed(url, "show", f"submission/{number}", "--source")
    assert shown == printed(nights.home, "show", f"submission/{number}", "--source")
    fetched = [path.name for path in (tmp_path / "cache").glob("*/*.parquet")]
    assert len(fetched) == 1
    assert f"parquet/artifact_texts/{fetched[0]}" in latest_of(Store(url)).files


def test_json_from_elsewhere_has_the_texts(nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELMART_CACHE", str(tmp_path / "cache"))
    url = f"file://{tmp_path / 'store'}"
    publish_to(url, nights.mirrored)
    changed = next(row for row in rows(nights.mirrored, "changes") if row["lines_added"])
    name = changed["submission_key"].replace("gpumode-kernelbot:", "submission/")
    here, there = as_json(nights.home, "show", name), as_json(url, "show", name)
    [submission] = there["submissions"]
    assert submission["diff"].startswith("--- ")
    assert submission["source_text"] == here["submissions"][0]["source_text"] is not None
    assert submission["diff"] == here["submissions"][0]["diff"]
