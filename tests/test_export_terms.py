"""What a source does not let anybody republish never leaves the warehouse in an export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from assets import catalogue
from tests.commands import refused, run
from tests.conftest import SmallHome
from warehouse import drafts, exports, snapshots
from warehouse.contracts import TABLES, Column, Table
from warehouse.home import Home
from warehouse.snapshots import Snapshot, required

FORMS = ("jsonl", "csv", "arrow", "kernelindex")
SOURCES = ("gpumode-kernelbot", "sol-execbench")
OWNED = ("run_id", "submission_key", "author_key")
DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")


@pytest.fixture(scope="module")
def open_snapshot(small_home: SmallHome) -> Snapshot:
    return required(Home(small_home.home))


@pytest.fixture(scope="module", params=SOURCES)
def closed(
    request: pytest.FixtureRequest, open_snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Home]:
    """A source, and a home with the small snapshot in which that source must not be republished."""
    home = Home(tmp_path_factory.mktemp("closed"))
    home.temporary.mkdir(parents=True)
    sources = rows_of(open_snapshot, "sources")
    for row in sources:
        row["redistributable"] = row["source"] != request.param
    changed = home.root / "sources.parquet"
    pq.write_table(pa.Table.from_pylist(sources, schema=TABLES["sources"].arrow_schema()), changed)
    parts = {name: open_snapshot.parquet(name) for name in TABLES}
    manifest = open_snapshot.manifest
    about = {
        name: manifest[name] for name in ("ranking_policy", "facts_revision", "code_version", "inputs", "inputs_key")
    }
    snapshots.publish(home, drafts.build(home, {**parts, "sources": [changed]}, about))
    return request.param, home


@pytest.fixture(scope="module")
def exported(closed: tuple[str, Home], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    source, home = closed
    folders = {form: tmp_path_factory.mktemp("exported") / form for form in FORMS}
    for form, folder in folders.items():
        result = run(home.root, "export", "--format", form, "--to", str(folder))
        assert (result.exit_code, result.stderr) == (0, f"left out: {source} may not be republished\n")
    return folders


def rows_of(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    return [row for path in snapshot.parquet(table) for row in pq.read_table(path, partitioning=None).to_pylist()]


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, decompressed."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        if path.suffix == ".zst":
            content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
        yield path.name, content


def owners(snapshot: Snapshot) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Sources of each digest and of each name, worked out without the exports' rules."""
    digests: dict[str, set[str]] = {}
    for table in ("runs", "submissions", "source_files", "cases", "problems", "cohorts"):
        for row in rows_of(snapshot, table):
            for value in row.values():
                if isinstance(value, str) and value.startswith("sha256:"):
                    digests.setdefault(value, set()).add(row["source"])
    names: dict[str, set[str]] = {}
    for table in ("problems", "authors", "source_files"):
        for row in rows_of(snapshot, table):
            for column in ("problem", "slug", "author_name", "project_slug", "locator"):
                # A plain word may stand anywhere.
                if row.get(column) and re.search(r"[^a-z]", row[column]):
                    names.setdefault(row[column], set()).add(row["source"])
    return digests, names


def test_keys_begin_with_their_source(open_snapshot: Snapshot) -> None:
    for table in TABLES.values():
        if "source" in table.names:
            names = [name for name in table.names if name.endswith(OWNED)]
            for row in rows_of(open_snapshot, table.name):
                assert {row[name].partition(":")[0] for name in names if row[name] is not None} <= {row["source"]}


def test_a_snapshot_names_the_sources_that_must_stay(closed: tuple[str, Home], open_snapshot: Snapshot) -> None:
    source, home = closed
    assert exports.not_redistributable(required(home)) == [source]
    assert exports.not_redistributable(open_snapshot) == []


@pytest.mark.parametrize("form", FORMS)
def test_no_row_name_or_digest_of_such_a_source_is_in_an_export(
    closed: tuple[str, Home], exported: dict[str, Path], open_snapshot: Snapshot, form: str
) -> None:
    source, _ = closed
    digests, names = owners(open_snapshot)
    hidden_digests = {value.encode() for value, of in digests.items() if of == {source}}
    shown_digests = {value.encode() for value, of in digests.items() if source not in of}
    hidden_names = {value.encode() for value, of in names.items() if of == {source} and len(value) > 5}
    assert len(hidden_digests) > 100
    assert len(hidden_names) > 10
    seen: set[bytes] = set()
    for name, content in contents(exported[form]):
        there = set(DIGEST.findall(content))
        assert there & hidden_digests == set(), name
        seen |= there
        # Keys of runs, submissions and authors begin with it.
        assert source.encode() not in content, name
        assert [value for value in hidden_names if _stands_in(value, content)] == [], name
    assert len(seen & shown_digests) > 50


def _stands_in(value: bytes, content: bytes) -> bool:
    """Whether a name stands in a content as a whole word."""
    return value in content and re.search(rb"(?<![\w-])" + re.escape(value) + rb"(?![\w-])", content) is not None


def test_all_rows_of_the_other_sources_are_there(
    closed: tuple[str, Home], exported: dict[str, Path], open_snapshot: Snapshot
) -> None:
    source, _ = closed
    counted = {}
    for name, table in TABLES.items():
        with pa.ipc.open_file(exported["arrow"] / f"{name}.arrow") as reader:
            found = reader.read_all().to_pylist()
        counted[name] = len(found)
        key: str | None = next((one for one in ("source", "run_id", "submission_key") if one in table.names), None)
        if key is not None and name != "sources":
            all_rows = rows_of(open_snapshot, name)
            assert found == [row for row in all_rows if str(row[key]).partition(":")[0] != source], name
    assert counted["sources"] == counted["snapshot"] == 1
    runs = [row for row in rows_of(open_snapshot, "runs") if row["source"] != source]
    for name, key in (("protocols", "protocol_digest"), ("environments", "environment_digest")):
        assert counted[name] == len({row[key] for row in runs if row[key]}) > 0
    texts = {row["source_digest"] for row in rows_of(open_snapshot, "submissions") if row["source"] != source}
    assert counted["artifacts"] == len(texts - {None})
    files = {(row["content_digest"], row["locator"]): row["source"] for row in rows_of(open_snapshot, "source_files")}
    assert counted["rejects"] == sum(
        files[row["content_digest"], row["locator"]] != source for row in rows_of(open_snapshot, "rejects")
    )


def test_the_terms_of_the_other_sources_are_all_that_is_shown(
    closed: tuple[str, Home], exported: dict[str, Path]
) -> None:
    source, _ = closed
    for form in FORMS:
        text = (exported[form] / "ATTRIBUTION.md").read_text(encoding="utf-8")
        assert ("GPU Mode and the KernelBot dataset" in text) == (source != "gpumode-kernelbot")
        assert ("NVIDIA SOL-ExecBench" in text) == (source != "sol-execbench")


def test_the_snapshots_row_names_no_input_of_such_a_source(closed: tuple[str, Home], exported: dict[str, Path]) -> None:
    source, home = closed
    assert set(required(home).manifest["inputs"]) == set(SOURCES)
    with pa.ipc.open_file(exported["arrow"] / "snapshot.arrow") as reader:
        (row,) = reader.read_all().to_pylist()
    assert source not in row["inputs"]
    assert next(one for one in SOURCES if one != source) in row["inputs"]


def test_a_table_whose_rows_tell_no_source_is_shown_to_nobody(
    closed: tuple[str, Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, home = closed
    column = Column("name", "VARCHAR", "A name.", key=True)
    monkeypatch.setitem(TABLES, "strangers", Table("strangers", "Strangers.", (column,), ("name",)))
    line = refused(home.root, "export", "--format", "csv", "--to", str(tmp_path / "out"))
    assert line == "strangers: nothing tells whose its rows are, and not all sources may be republished"
    assert list(tmp_path.iterdir()) == []


def test_all_is_shown_where_every_source_may_be_republished(open_snapshot: Snapshot, tmp_path: Path) -> None:
    made = exports.export(open_snapshot, tmp_path / "out", catalogue.FORM, catalogue.write)
    assert (made.left_out, made.rows["sources"]) == ([], 2)
