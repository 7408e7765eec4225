"""The published submission whose source is known to the byte: read here, it has the digests that it is known by."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.kernelbot.build import build_tables, read_files
from assets.kernelbot.terms import SOURCE
from tests.conftest import SHARED
from warehouse.parts import PartStore
from warehouse.raw import Collection, RawFile

pytestmark = pytest.mark.skipif(SHARED is None, reason="KERNELMART_CONFORMANCE names no folder")
FILE = "amd_1_1m_competition_submissions.parquet"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    text = Path(str(SHARED), "golden", "submission_746673.json").read_text(encoding="utf-8")
    known: dict[str, Any] = json.loads(text)
    return known


@pytest.fixture(scope="module")
def rows(golden: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The submission's rows in the tables that its file gives, without any digest known before."""
    folder = tmp_path_factory.mktemp("golden")
    table = pq.read_table(Path(str(SHARED), "data", "dumps", "kernelbot", FILE), partitioning=None)
    text = Path(str(SHARED), "golden", "submission_746673.py").read_bytes().decode()
    code = [text if number == golden["submission_id"] else None for number in table["submission_id"].to_pylist()]
    path = folder / FILE
    place = table.schema.get_field_index("code")
    pq.write_table(table.set_column(place, "code", pa.array(code, pa.large_string())), path)
    digest = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    file = RawFile(FILE, path, digest, path.stat().st_size, datetime.now(UTC))
    store = PartStore(folder / "tables")
    (folder / "temporary").mkdir()
    collection = read_files(store, Collection(SOURCE, (file,)), None)
    files = build_tables(store, collection, folder / "temporary", "index")
    key = f"{SOURCE}:{golden['submission_id']}"
    return {
        name: [
            row
            for file_name in files[name]
            for row in pq.read_table(store.root / file_name, partitioning=None).to_pylist()
            if row.get("submission_key", key) == key
        ]
        for name in ("submissions", "runs", "artifacts", "techniques", "changes")
    }


def test_its_source_is_digested_as_it_is(rows: dict[str, list[dict[str, Any]]], golden: dict[str, Any]) -> None:
    (submission,) = rows["submissions"]
    assert (submission["source_digest"], submission["source_bytes"]) == (golden["content_digest"], golden["size_bytes"])
    (artifact,) = rows["artifacts"]
    assert (artifact["source_digest"], artifact["lines"]) == (golden["content_digest"], golden["lines"])


def test_its_implementation_is_final(rows: dict[str, list[dict[str, Any]]], golden: dict[str, Any]) -> None:
    (run,) = rows["runs"]
    assert (run["implementation_digest"], run["identity"]) == (golden["implementation_digest"], "final")
    assert run["primary_value"] == golden["score_s"]


def test_its_techniques_and_its_predecessor_are_known(
    rows: dict[str, list[dict[str, Any]]], golden: dict[str, Any]
) -> None:
    assert [{"trait": row["trait"], "line": row["line"]} for row in rows["techniques"]] == golden["techniques"]
    (change,) = rows["changes"]
    assert change["previous_submission_key"] == f"{SOURCE}:{golden['previous_submission_id']}"
