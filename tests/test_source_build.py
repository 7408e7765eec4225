"""Parts of the sources' tables: what is read once, what is carried over, and what follows for submissions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.kernelbot.boards import KNOWN_SOURCES
from assets.submission_sources import build, changes, families, techniques
from assets.submission_sources.build import Source
from assets.submission_sources.diffs import difference
from assets.submission_sources.lexing import lex
from warehouse.contracts import ARROW_TYPES, PARQUET_ONLY, TABLES
from warehouse.parts import PartStore
from warehouse.raw import RawFile

FIRST = b"import torch\nnum_warps = 4\nx = load(p)\ny = x + 1\nprint(y)\n"
SECOND = FIRST.replace(b"4", b"8") + b"z = 1\n"
BINARY = b"\xff\x00 binary"
TIME = datetime(2026, 1, 1, tzinfo=UTC)


def digest_of(text: bytes) -> str:
    return "sha256:" + hashlib.sha256(text).hexdigest()


def raw_file(folder: Path, name: str, rows: Sequence[tuple[int, bytes | None]]) -> RawFile:
    path = folder / name
    ids, codes = [number for number, _ in rows], [text for _, text in rows]
    pq.write_table(pa.table({"submission_id": pa.array(ids), "code": pa.array(codes, pa.binary())}), path)
    return RawFile(name, path, digest_of(path.read_bytes()), path.stat().st_size, TIME)


@pytest.fixture
def store(tmp_path: Path) -> PartStore:
    return PartStore(tmp_path / "tables")


def rows_of(store: PartStore, files: Sequence[str]) -> list[dict[str, Any]]:
    tables = [pq.read_table(store.root / file, partitioning=None) for file in files]
    return [row for table in tables for row in table.to_pylist()]


def table_file(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    """A part of a table of the contract; what a row does not say is null."""
    path = folder / f"{name}.parquet"
    schema = pa.schema([pa.field(field.name, field.type) for field in TABLES[name].arrow_schema()])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def known(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(KNOWN_SOURCES.names, row, strict=True)) for row in rows], schema=KNOWN_SOURCES
    )


def test_what_was_read_wins_over_a_known_digest_and_nothing_contradicts_one(store: PartStore, tmp_path: Path) -> None:
    files = [
        raw_file(tmp_path, "b.parquet", [(1, FIRST), (2, None), (3, None), (4, SECOND), (4, SECOND), (6, FIRST)]),
        raw_file(tmp_path, "a.parquet", [(4, FIRST), (5, b"")]),
    ]
    sources = build.read_sources(store, files)
    assert [source.file.locator for source in sources] == ["a.parquet", "b.parquet"]
    other = digest_of(b"other")
    table, conflicts = build.known_sources(
        sources, known((1, other, 5), (2, other, 5), (6, digest_of(FIRST), 1), (9, other, 5)), tmp_path
    )
    smallest = min((digest_of(text), len(text)) for text in (FIRST, SECOND))
    assert table.to_pylist() == [
        {"submission_id": number, "source_digest": digest, "source_bytes": size}
        for number, (digest, size) in {
            1: (digest_of(FIRST), len(FIRST)),
            2: (other, 5),
            3: (None, None),
            4: smallest,
            5: (None, None),
            6: (digest_of(FIRST), len(FIRST)),
            9: (other, 5),
        }.items()
    ]
    assert [(conflict.locator, conflict.detail) for conflict in conflicts] == [
        ("a.parquet", "submission 4 has several sources, the one with the smallest digest counts"),
        ("b.parquet", "submission 1 has another source than was known, the one that was read counts"),
    ]
    assert build.unread(table, sources, tmp_path)["source_digest"].to_pylist() == [other]


def test_without_sources_all_that_is_known_stays(store: PartStore, tmp_path: Path) -> None:
    path = tmp_path / "boards.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    boards = RawFile(path.name, path, digest_of(path.read_bytes()), path.stat().st_size, TIME)
    assert build.read_sources(store, [boards]) == []
    table = known((1, digest_of(FIRST), 5))
    assert build.known_sources([], table, tmp_path) == (table, [])


def test_files_that_were_read_before_are_known_by_their_content(store: PartStore, tmp_path: Path) -> None:
    files = [raw_file(tmp_path, "a.parquet", [(1, FIRST)]), raw_file(tmp_path, "b.parquet", [(2, SECOND)])]
    assert build.read_before(store, files) == []
    first = build.read_sources(store, files[:1])
    assert build.read_before(store, files[::-1]) == first


def test_what_a_snapshot_has_of_sources_that_were_read_is_remembered(tmp_path: Path) -> None:
    source = {"source": "gpumode-kernelbot"}
    submissions = [
        {**source, "submission_key": "k:1", "submission_id": 1, "source_digest": digest_of(FIRST), "source_bytes": 5},
        {**source, "submission_key": "k:2", "submission_id": 2, "source_digest": digest_of(SECOND), "source_bytes": 6},
        {**source, "submission_key": "k:3", "submission_id": 3},
        {**source, "submission_key": "k:4", "submission_id": 4},
        {"source": "sol-execbench", "submission_key": "s:5", "submission_id": 5},
    ]
    keys = {"k:1": "final", "k:3": "final", "k:4": "provisional", "s:5": "final"}
    runs = [{"submission_key": key, "identity": identity} for key, identity in keys.items()]
    artifacts = [{"source_digest": digest_of(FIRST), "lines": 5}, {"source_digest": digest_of(SECOND)}]
    tables: dict[str, Any] = {"submissions": submissions, "runs": runs, "artifacts": artifacts}
    paths = [[table_file(tmp_path, name, rows)] for name, rows in tables.items()]
    assert build.remembered(paths[0], paths[1], paths[2], tmp_path) == known((1, digest_of(FIRST), 5), (3, None, None))
    assert build.remembered([], [], [], tmp_path).num_rows == 0


def test_every_text_is_described_once_however_many_files_have_it(store: PartStore, tmp_path: Path) -> None:
    files = [
        raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, FIRST), (3, BINARY)]),
        raw_file(tmp_path, "b.parquet", [(1, FIRST), (4, SECOND)]),
    ]
    made = build.build_artifacts(store, build.read_sources(store, files), "mirror", tmp_path)
    artifacts = {row["source_digest"]: row for row in rows_of(store, made["artifacts"])}
    assert sorted(artifacts) == sorted(map(digest_of, (FIRST, SECOND, BINARY)))
    assert len(rows_of(store, made["artifacts"])) == 3
    assert artifacts[digest_of(FIRST)] == {
        "source_digest": digest_of(FIRST), "size_bytes": len(FIRST), "lines": 5, "language": "python",
        "media_type": "text/x-python", "license": "unknown", "text_stored": True, "declared_leaderboard": None,
        "declared_gpus": [],
    }  # fmt: skip
    assert artifacts[digest_of(BINARY)]["language"] is None
    assert [tuple(row.values()) for row in rows_of(store, made["techniques"])] == [
        (digest_of(FIRST), "num-warps", 2, "4", "code", "num_warps = 4", techniques.version()),
        (digest_of(SECOND), "num-warps", 2, "8", "code", "num_warps = 8", techniques.version()),
    ]
    texts = {row["source_digest"]: (row["text"], row["bytes"]) for row in rows_of(store, made["artifact_texts"])}
    assert texts == {
        digest_of(FIRST): (FIRST.decode(), None),
        digest_of(SECOND): (SECOND.decode(), None),
        digest_of(BINARY): (None, BINARY),
    }


def test_an_index_keeps_no_text(store: PartStore, tmp_path: Path) -> None:
    sources = build.read_sources(store, [raw_file(tmp_path, "a.parquet", [(1, FIRST)])])
    made = build.build_artifacts(store, sources, "index", tmp_path)
    assert made["artifact_texts"] == []
    assert [row["text_stored"] for row in rows_of(store, made["artifacts"])] == [False]
    assert not any(FIRST in path.read_bytes() for path in store.root.rglob("*.parquet"))


def test_only_new_texts_are_looked_at(store: PartStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []

    def noting(text: bytes) -> Any:
        looked_at.append(text)
        return lex(text)

    monkeypatch.setattr("assets.submission_sources.build.lex", noting)
    sources = build.read_sources(store, [raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, BINARY)])])
    before = build.build_artifacts(store, sources, "index", tmp_path)
    assert looked_at == [FIRST, BINARY]
    assert build.build_artifacts(store, sources, "index", tmp_path) == before
    later = build.read_sources(store, [raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, BINARY), (3, SECOND)])])
    after = build.build_artifacts(store, later, "mirror", tmp_path)
    assert looked_at == [FIRST, BINARY, SECOND]
    alone = PartStore(tmp_path / "alone")
    fresh = build.build_artifacts(alone, later, "mirror", tmp_path)
    for name in ("artifacts", "techniques", "sketches", "artifact_texts"):
        mine, theirs = rows_of(store, after[name]), rows_of(alone, fresh[name])
        assert sorted(mine, key=str) == sorted(theirs, key=str), name


def submission(number: int, author: str | None, minute: int | None, text: bytes | None, **more: Any) -> dict[str, Any]:
    submitted_at = None if minute is None else TIME + timedelta(minutes=minute)
    return {
        "submission_key": f"gpumode-kernelbot:{number}", "source": "gpumode-kernelbot", "submission_id": number,
        "problem": "board", "author_key": author, "submitted_at": submitted_at,
        "source_digest": digest_of(text) if text else None, **more,
    }  # fmt: skip


def run(number: int, cohort: str, value: float, *, eligible: bool = True) -> dict[str, Any]:
    key = f"gpumode-kernelbot:{number}"
    return {"submission_key": key, "comparison_key": cohort, "primary_value": value, "eligible": eligible}


def changed(
    store: PartStore,
    folder: Path,
    sources: list[Source],
    depth: build.Depth,
    submissions: list[dict[str, Any]],
    runs: list[dict[str, Any]],
) -> tuple[list[tuple[Any, ...]], dict[str, str]]:
    paths = table_file(folder, "submissions", submissions), table_file(folder, "runs", runs)
    made = changes.build_changes(store, [paths[0]], [paths[1]], sources, depth, folder)
    rows = [
        tuple(int(value.rpartition(":")[2]) if isinstance(value, str) else value for value in row.values())
        for row in rows_of(store, made["changes"])
    ]
    return rows, {row["submission_key"].rpartition(":")[2]: row["diff"] for row in rows_of(store, made["change_texts"])}


def test_each_submission_is_compared_with_its_authors_last_earlier_one_on_the_board(
    store: PartStore, tmp_path: Path
) -> None:
    texts: dict[int, bytes | None] = {
        1: FIRST,
        2: SECOND,
        3: SECOND,
        4: None,
        5: FIRST,
        6: BINARY,
        7: FIRST,
        8: FIRST,
        9: FIRST,
    }
    sources = build.read_sources(store, [raw_file(tmp_path, "a.parquet", list(texts.items()))])
    submissions = [
        submission(1, "u:1", 10, FIRST),
        submission(3, "u:1", 20, SECOND),  # Of one time with 2, and of a larger number.
        submission(2, "u:1", 20, SECOND),
        submission(4, "u:1", 30, None),
        submission(5, "u:1", 40, FIRST, problem="other"),
        submission(6, "u:2", 5, BINARY),
        submission(7, "u:2", 50, FIRST),
        submission(8, None, 60, FIRST),
        submission(9, "u:1", None, FIRST),
    ]
    runs = [
        run(1, "k", 4.0), run(1, "k", 5.0), run(2, "k", 1.0), run(3, "k", 2.0), run(3, "l", 2.0), run(4, "k", 1.0),
        run(4, "l", 1.0), run(6, "k", 3.0), run(7, "k", 6.0, eligible=False),
    ]  # fmt: skip
    rows, diffs = changed(store, tmp_path, sources, "mirror", submissions, runs)
    assert rows == [
        (2, 1, 2, 1, False, 0.25),
        (3, 2, 0, 0, False, 2.0),
        (4, 3, None, None, None, None),
        (7, 6, 5, 1, False, None),
    ]
    assert set(diffs) == {"2"}
    assert "-num_warps = 4\n+num_warps = 8\n" in diffs["2"]


def test_an_index_has_the_counts_and_no_diffs(store: PartStore, tmp_path: Path) -> None:
    sources = build.read_sources(store, [raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, SECOND)])])
    submissions = [submission(1, "u:1", 1, FIRST), submission(2, "u:1", 2, SECOND)]
    assert changed(store, tmp_path, sources, "index", submissions, []) == ([(2, 1, 2, 1, False, None)], {})
    assert changed(store, tmp_path, [], "index", submissions, [])[0] == [(2, 1, None, None, None, None)]
    assert list(tmp_path.glob("pairs-*")) == []


def test_a_pair_of_texts_is_compared_once(store: PartStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def noting(old: bytes, new: bytes, **options: Any) -> Any:
        compared.append((old, new))
        return difference(old, new, **options)

    monkeypatch.setattr("assets.submission_sources.diffs.difference", noting)
    submissions = [submission(1, "u:1", 1, FIRST), submission(2, "u:1", 2, SECOND), submission(3, "u:2", 1, FIRST)]
    sources = build.read_sources(store, [raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, SECOND), (3, FIRST)])])
    before = changed(store, tmp_path, sources, "mirror", submissions, [])
    later = build.read_sources(
        store, [raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, SECOND), (3, FIRST), (4, SECOND), (5, BINARY)])]
    )
    more = [submission(4, "u:2", 2, SECOND), submission(5, "u:2", 3, BINARY)]
    rows, diffs = changed(store, tmp_path, later, "mirror", submissions + more, [])
    assert compared == [(FIRST, SECOND), (SECOND, BINARY)]
    assert rows == [*before[0], (4, 3, 2, 1, False, None), (5, 4, 1, 6, False, None)]
    assert diffs == {"2": before[1]["2"], "4": before[1]["2"]}


def test_families_say_who_was_first(store: PartStore, tmp_path: Path) -> None:
    lines = b"".join(b"x%d = load(p + %d)\n" % (number, number) for number in range(60))
    near, far = lines.replace(b"load(p + 7)", b"load(q)"), FIRST
    codes = [(1, lines), (2, near), (3, far), (4, near.replace(b"load", b"fetch"))]
    files = [raw_file(tmp_path, "a.parquet", codes[:2]), raw_file(tmp_path, "b.parquet", codes[2:])]
    submissions = [submission(number, f"u:{number}", 10 - number, text) for number, text in codes]
    path = table_file(tmp_path, "submissions", submissions)

    def found(order: list[RawFile], place: PartStore) -> list[dict[str, Any]]:
        sources = build.read_sources(place, order)
        sketches = build.build_artifacts(place, sources, "index", tmp_path)["sketches"]
        return rows_of(place, build.build_families(place, sketches, [path], sources, tmp_path))

    rows = found(files, store)
    members = sorted(digest_of(codes[number][1]) for number in (0, 1, 3))
    assert rows == [
        {"source_digest": digest, "family": members[0], "size": 3, "first_author_key": "u:4",
         "first_submission_key": "gpumode-kernelbot:4"}
        for digest in members
    ]  # fmt: skip
    assert found(files[::-1], PartStore(tmp_path / "other")) == rows
    assert families.VERSION in build.version()


def test_tables_are_those_of_the_contract(store: PartStore, tmp_path: Path) -> None:
    sources = build.read_sources(store, [raw_file(tmp_path, "a.parquet", [(1, FIRST), (2, SECOND)])])
    submissions = table_file(tmp_path, "submissions", [submission(1, "a", 0, FIRST), submission(2, "a", 1, SECOND)])
    runs = table_file(tmp_path, "runs", [run(1, "x", 1.0), run(2, "x", 2.0)])
    made = build.build_artifacts(store, sources, "mirror", tmp_path)
    made |= changes.build_changes(store, [submissions], [runs], sources, "mirror", tmp_path)
    for name in ("artifacts", "techniques", "changes", "artifact_texts", "change_texts"):
        declared = {**TABLES, **PARQUET_ONLY}[name]
        for path in made[name]:
            schema = pq.read_schema(store.root / path)
            assert schema.names == list(declared.names)
            assert schema.types == [ARROW_TYPES[column.type] for column in declared.columns]
        assert made[name]
