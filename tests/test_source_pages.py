"""What the page of a submission says of it as an implementation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from assets.submission_sources.texts import ARTIFACT_TEXTS, CHANGE_TEXTS, artifact_texts, change_texts
from pipelines import sources
from pipelines.pages import Page
from pipelines.records import NotFoundError
from pipelines.source_pages import implementation_page, print_text
from tests.commands import fields, harmful, table
from warehouse.contracts import RANKING_POLICY, TABLES
from warehouse.texts import write_texts

KEY = "gpumode-kernelbot:746673"
EARLIER = "gpumode-kernelbot:745875"
DIGEST = "sha256:" + "c" * 64
BINARY_DIGEST = "sha256:" + "d" * 64
REVISION = "sha256:" + "e" * 64
TIME = datetime(2026, 3, 1, tzinfo=UTC)
HOSTILE = "x = 1\x1b[31m \u202e"
FAMILIES = pa.schema(
    [
        ("source_digest", pa.string()),
        ("family", pa.string()),
        ("size", pa.int64()),
        ("first_author_key", pa.string()),
        ("first_submission_key", pa.string()),
    ]
)
RUN = {
    "submission_key": KEY, "gpu": "AMD Instinct MI355X", "runner": "MI355X", "architecture": "gfx950", "eligible": True,
    "primary_statistic": "geomean", "primary_unit": "s", "primary_value": 0.0001782210243879645, "comparison_key": "k",
    "evidence_level": "reported", "observed_at": TIME, "run_id": f"{KEY}/leaderboard/MI355X",
}  # fmt: skip
RANK = {"policy": RANKING_POLICY, "cohort_runs": 40, "cohort_authors": 9, "gap_to_best": 1.5}
ROWS: dict[str, list[dict[str, Any]]] = {
    "submissions": [
        {"submission_key": KEY, "submission_id": 746673, "source_digest": DIGEST, "source_bytes": 1608,
         "file_name": "submission_v2.py", "submitted_at": TIME},
        {"submission_key": EARLIER, "submission_id": 745875, "source_digest": BINARY_DIGEST, "submitted_at": TIME},
        {"submission_key": "gpumode-kernelbot:1", "submission_id": 1},
    ],
    "implementations": [
        {"submission_key": KEY, "implementation_digest": REVISION, "language": "python", "architectures": ["gfx950"],
         "products": ["AMD Instinct MI355X"], "dtypes": ["bf16", "fp4"]},
    ],
    "runs": [
        RUN,
        {**RUN, "run_id": "worse", "primary_value": 1.0},
        {**RUN, "run_id": "other", "gpu": "NVIDIA B200", "runner": "NVIDIA", "comparison_key": "l", "eligible": False},
    ],
    "ranks": [
        {**RANK, "run_id": RUN["run_id"], "rank": 3, "author_rank": 2},
        {**RANK, "run_id": "worse", "rank": 7, "author_rank": None},
    ],
    "snapshot": [{"snapshot_id": "s", "ranking_policy": RANKING_POLICY}],
    "artifacts": [
        {"source_digest": DIGEST, "size_bytes": 1608, "lines": 59, "language": "triton", "media_type": "text/x-python",
         "license": "unknown", "text_stored": True, "declared_leaderboard": "amd-moe-mxfp4",
         "declared_gpus": ["MI355X"]},
    ],
    "techniques": [
        {"source_digest": DIGEST, "trait": "num-warps", "line": 40, "value": "8", "context": "code",
         "evidence": HOSTILE, "extractor": "techniques-1"},
        {"source_digest": DIGEST, "trait": "fp4", "line": 4, "value": None, "context": "docstring",
         "evidence": "MXFP4 MoE", "extractor": "techniques-1"},
    ],
    "artifact_families": [
        {"source_digest": DIGEST, "family": DIGEST, "size": 3, "first_author_key": "a", "first_submission_key": EARLIER}
    ],
    "changes": [
        {"submission_key": KEY, "previous_submission_key": EARLIER, "lines_added": 12, "lines_removed": 3,
         "line_endings_changed": True, "value_ratio": 0.9595619760473597},
    ],
}  # fmt: skip
_SCHEMAS = {
    **{name: TABLES[name].arrow_schema() for name in ("artifacts", "techniques", "changes")},
    "artifact_families": FAMILIES,
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute("set timezone = 'UTC'")
        for name, rows in ROWS.items():
            schema = _SCHEMAS.get(name) or TABLES[name].arrow_schema()
            nullable = pa.schema([pa.field(field.name, field.type) for field in schema])
            opened.from_arrow(pa.Table.from_pylist(rows, schema=nullable)).create(name)
        yield opened


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> sources.Texts:
    folder = tmp_path_factory.mktemp("texts")
    kept: list[Path] = []
    for digest, text in ((DIGEST, b"import torch\r\n\tx = 1\n"), (BINARY_DIGEST, b"\xff\x00")):
        kept.append(folder / f"{digest[7]}.parquet")
        write_texts(kept[-1], artifact_texts([(digest, text)]), ARTIFACT_TEXTS)
    diffs = folder / "diffs.parquet"
    write_texts(diffs, change_texts([(KEY, "--- a/source\n")]), CHANGE_TEXTS)
    return sources.Texts(kept, [diffs])


def page_of(connection: duckdb.DuckDBPyConnection, key: str, capsys: pytest.CaptureFixture[str]) -> str:
    implementation_page(Page(), sources.implementation(connection, key))
    printed = capsys.readouterr().out
    assert harmful(printed) == set()
    return printed


def test_a_submission_as_an_implementation(
    connection: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = page_of(connection, KEY, capsys)
    expected = {
        "Source": "mirrored, licence unknown, 59 lines",
        "File": "submission_v2.py",
        "Language": "triton",
        "Measured on": "AMD Instinct MI355X (MI355X), NVIDIA B200 (NVIDIA)",
        "Declared for": "MI355X",
        "Declared board": "amd-moe-mxfp4",
        "Architectures": "gfx950",
        "Data types": "bf16, fp4",
        "Revision digest": f"{REVISION} (AMD Instinct MI355X)",
        "Evidence": "reported at best",
        "Source digest": DIGEST,
        "Size": "1608 bytes",
        "Media type": "text/x-python",
        "Source licence": "unknown",
        "Family": f"3 sources that are nearly the same, first in {EARLIER}",
        "Previous": "submission/745875 of 2026-03-01",
        "Lines": "+12 −3",
        "Line ends": "changed",
        "Value": "0.9596× the previous one, better",
    }
    assert expected.items() <= fields(printed).items()
    assert "178 µs, geomean" in printed
    assert [row[3:6] for row in table(printed, "gpu")][:1] == [["3 of 40", "2 of 9", "1.50×"]]
    assert "2 techniques, by techniques-1" in printed
    assert "x = 1\\x1b[31m" in printed


def test_what_is_not_known_is_said(connection: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]) -> None:
    assert fields(page_of(connection, "gpumode-kernelbot:1", capsys)) == {
        "Source": "not known here",
        "Measured on": "nothing",
        "Evidence": "no ranked run",
    }
    assert "not mirrored, licence unknown" in page_of(connection, EARLIER, capsys)


def test_the_record_has_all_of_it(connection: duckdb.DuckDBPyConnection) -> None:
    record = sources.implementation(connection, KEY)
    assert record["artifact"]["lines"] == 59
    assert [(row["trait"], row["line"]) for row in record["techniques"]] == [("fp4", 4), ("num-warps", 40)]
    assert [(row["gpu"], row["runs"], row["ranked_runs"]) for row in record["measured_on"]] == [
        ("AMD Instinct MI355X", 2, 2),
        ("NVIDIA B200", 1, 0),
    ]
    assert [(row["run_id"], row["rank"]) for row in record["evidence"]] == [(RUN["run_id"], 3)]
    assert record["change"]["previous_submission_id"] == 745875
    assert record["implementations"][0]["implementation_digest"] == REVISION


def test_the_source_and_the_change_are_read_from_the_snapshots_texts(
    connection: duckdb.DuckDBPyConnection, texts: sources.Texts, capsys: pytest.CaptureFixture[str]
) -> None:
    text = sources.source_text(sources.implementation(connection, KEY), texts)
    assert text == b"import torch\r\n\tx = 1\n"
    print_text(text)
    assert capsys.readouterr().out == "import torch\n    x = 1\n"
    binary = sources.source_text(sources.implementation(connection, EARLIER), texts)
    assert binary == b"\xff\x00"
    print_text(binary)
    assert capsys.readouterr().out == "\\xff\\x00\n"
    assert sources.change_text(KEY, texts) == "--- a/source\n"
    assert sources.change_text(EARLIER, texts) is None


def test_a_text_that_is_not_kept_is_told_how_to_get(
    connection: duckdb.DuckDBPyConnection, texts: sources.Texts
) -> None:
    with pytest.raises(NotFoundError, match="is not kept here; ingest with --code mirror"):
        sources.source_text(sources.implementation(connection, KEY), sources.Texts())
    with pytest.raises(NotFoundError, match="no source is known"):
        sources.source_text(sources.implementation(connection, "gpumode-kernelbot:1"), texts)
