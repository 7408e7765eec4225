"""The catalogue export stands alone: every digest in it can be computed from it, every id in it leads to a row."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
import zstandard

from assets import catalogue
from tests.commands import as_json, printed
from tests.conftest import SmallHome
from warehouse import exports
from warehouse.home import Home
from warehouse.snapshots import required

SHARED = os.environ.get("KERNELMART_CONFORMANCE")
NAMESPACE = uuid.UUID("6f0c8a52-3d5e-5b1c-9a7e-2f4b6d8e1c03")
Row = dict[str, Any]

KEYS = {
    "sources": "id, slug, kind, name, policy, createdAt",
    "projects": "id, slug, name, normalizedName, canonicalUrl, licenseExpression, manifest, createdAt",
    "operations": "id, slug, family, name, schemaVersion, semanticDigest, manifest, tags, createdAt, supersedesId",
    "operation_aliases": "operationId, alias",
    "workloads": (
        "id, operationId, workloadDigest, schemaVersion, manifest, shapeSummary, dtypes, layoutKeys, createdAt"
    ),
    "implementations": (
        "id, projectId, operationId, slug, implementationDigest, sourceRevision, language, framework, "
        "targetArchitectures, licenseExpression, sourceAvailable, installable, title, licenseDeclared, manifest, "
        "createdAt, supersedesId"
    ),
    "benchmark_runs": (
        "id, runDigest, implementationId, workloadId, sourceId, status, observedAt, publishedAt, hardwareVendor, "
        "hardwareModel, hardwareArchitecture, protocolKey, environmentKey, correctnessKey, comparisonKey, "
        "primaryMetric, primaryStatistic, primaryValue, primaryUnit, sampleCount, reported, sourceAvailable, "
        "installable, sourceNative, hasRawEvidence, manifest"
    ),
    "measurements": "id, runId, metric, statistic, unit, value, sampleCount",
    "record_events": "id, comparisonKey, runId, previousRunId, policyVersion, cause, at, createdAt",
    "artifacts": "id, contentDigest, kind, mediaType, sizeBytes, storage, uri, license, createdAt",
}
REFERENCES = {
    "operation_aliases": {"operationId": "operations"},
    "workloads": {"operationId": "operations"},
    "implementations": {"projectId": "projects", "operationId": "operations", "supersedesId": "implementations"},
    "benchmark_runs": {"implementationId": "implementations", "workloadId": "workloads", "sourceId": "sources"},
    "measurements": {"runId": "benchmark_runs"},
    "record_events": {"runId": "benchmark_runs", "previousRunId": "benchmark_runs"},
}
# Where a row may lead nowhere: an author that nobody names, the first record of a cohort.
OPTIONAL = {"projectId", "previousRunId", "supersedesId"}


@pytest.fixture(scope="module", params=["small", "real"])
def home(request: pytest.FixtureRequest) -> Path:
    if request.param == "small":
        small: SmallHome = request.getfixturevalue("small_home")
        return small.home
    found: Path = request.getfixturevalue("real_home")
    return found


@pytest.fixture(scope="module")
def exported(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue") / "out"
    printed(home, "export", "--format", "kernelindex", "--to", str(folder))
    return folder


@pytest.fixture(scope="module")
def tables(exported: Path) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {name: [] for name in KEYS}
    for line in lines_of(exported):
        entry = json.loads(line)
        assert list(entry) == ["table", "row"]
        found[entry["table"]].append(entry["row"])
    return found


def lines_of(folder: Path) -> Iterator[str]:
    with (folder / catalogue.FILE).open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        yield from io.TextIOWrapper(stream, encoding="utf-8", newline="\n")


def digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def digest_of(manifest: Row) -> str:
    assert list(manifest) == ["apiVersion", "kind", "metadata", "spec"]
    return digest({name: value for name, value in manifest.items() if name != "metadata"})


def test_the_tables_come_in_order_with_the_keys_that_the_registry_has(
    exported: Path, tables: dict[str, list[Row]]
) -> None:
    order = list(dict.fromkeys(re.match(r'\{"table":"(\w+)"', line)[1] for line in lines_of(exported)))  # type: ignore[index]
    assert order == [name for name in KEYS if tables[name]]
    assert tuple(KEYS) == catalogue.CATALOGUE_TABLES
    for name, rows in tables.items():
        assert {", ".join(row) for row in rows} <= {KEYS[name]}, name
    description = json.loads((exported / "export.json").read_text())
    assert description["rows"] == {name: len(rows) for name, rows in tables.items()}
    for name in ("sources", "projects", "operations", "workloads", "implementations", "benchmark_runs", "measurements"):
        assert tables[name]


def test_every_id_is_that_of_its_natural_key_and_every_reference_leads_to_a_row(tables: dict[str, list[Row]]) -> None:
    natural = {
        "operations": "semanticDigest", "workloads": "workloadDigest", "implementations": "implementationDigest",
        "artifacts": "contentDigest", "sources": "slug",
    }  # fmt: skip
    ids = {name: {row["id"] for row in rows} for name, rows in tables.items() if name != "operation_aliases"}
    for name, found in ids.items():
        assert len(found) == len(tables[name]), name
        assert all(str(uuid.UUID(one)) == one and uuid.UUID(one).version == 5 for one in found)
        if name in natural:
            assert found == {str(uuid.uuid5(NAMESPACE, f"{name}/{row[natural[name]]}")) for row in tables[name]}
    for name, references in REFERENCES.items():
        for key, target in references.items():
            values = {row[key] for row in tables[name]}
            assert values - ids[target] <= ({None} if key in OPTIONAL else set()), (name, key)


def test_every_digest_and_key_is_that_of_the_manifests(tables: dict[str, list[Row]]) -> None:
    assert {digest_of(row["manifest"]) for row in tables["operations"]} == {
        row["semanticDigest"] for row in tables["operations"]
    }
    for row in tables["operations"]:
        assert digest_of(row["manifest"]) == row["semanticDigest"]
    operations = {row["id"]: row for row in tables["operations"]}
    workloads = {row["id"]: row for row in tables["workloads"]}
    implementations = {row["id"]: row for row in tables["implementations"]}
    sources = {row["id"]: row for row in tables["sources"]}
    for row in workloads.values():
        assert digest_of(row["manifest"]) == row["workloadDigest"]
    for row in implementations.values():
        spec = row["manifest"]["spec"]
        assert digest_of(row["manifest"]) == row["implementationDigest"]
        assert spec["operation"]["specDigest"] == operations[row["operationId"]]["semanticDigest"]
        assert (row["sourceRevision"], row["language"]) == (
            spec["projectRevision"]["version"], spec["callable"]["language"]
        )  # fmt: skip
        assert row["sourceAvailable"] == ("source" in spec)
        assert row["targetArchitectures"] == spec["support"]["hardwareArchitectures"]
        assert row["title"] == row["manifest"]["metadata"]["title"]
    for row in tables["benchmark_runs"]:
        documents, spec = row["manifest"], row["manifest"]["run"]["spec"]
        assert list(documents) == ["run", "protocol", "environment"]
        assert digest_of(documents["run"]) == row["runDigest"]
        assert digest_of(documents["protocol"]) == row["protocolKey"] == spec["protocolDigest"]
        assert digest_of(documents["environment"]) == row["environmentKey"] == spec["environmentDigest"]
        workload, implementation = workloads[row["workloadId"]], implementations[row["implementationId"]]
        assert workload["workloadDigest"] == spec["workloadDigest"]
        assert implementation["implementationDigest"] == spec["implementationDigest"]
        assert row["sourceAvailable"] == implementation["sourceAvailable"]
        assert sources[row["sourceId"]]["slug"] == spec["sourceNative"]["source"]
        assert (row["status"], row["observedAt"]) == (spec["status"], spec.get("observedAt"))
        # The cases of boards without facts leave it to the harness how correctness is judged.
        correctness = workload["manifest"]["spec"].get("correctness", {"comparator": "kernelbot_eval"})
        assert digest({"correctness": correctness}) == row["correctnessKey"]
        assert row["comparisonKey"] == digest(
            {
                "v": 1,
                "operation": operations[workload["operationId"]]["semanticDigest"],
                "workload": workload["workloadDigest"],
                "protocol": row["protocolKey"],
                "environment": row["environmentKey"],
                "correctness": row["correctnessKey"],
                "metric": f"{row['primaryMetric']}:{row['primaryStatistic']}:{row['primaryUnit']}",
            }
        )
        hardware = documents["environment"]["spec"]["hardware"]
        assert [row["hardwareVendor"], row["hardwareModel"], row["hardwareArchitecture"]] == [
            hardware["vendor"], hardware["product"], hardware["architecture"]
        ]  # fmt: skip


def test_measurements_are_the_figures_of_the_documents(tables: dict[str, list[Row]]) -> None:
    found: dict[str, set[tuple[Any, ...]]] = {}
    for row in tables["measurements"]:
        figure = (row["metric"], row["statistic"], row["unit"], row["value"], row["sampleCount"])
        found.setdefault(row["runId"], set()).add(figure)
    assert sum(map(len, found.values())) == len(tables["measurements"])
    for row in tables["benchmark_runs"]:
        spec = row["manifest"]["run"]["spec"]
        samples = spec.get("timing", {}).get("samples")
        expected = {
            ("latency", statistic, "ns", spec["timing"]["latencyNs"][name], samples)
            for statistic, name in (("mean", "mean"), ("min", "minimum"), ("max", "maximum"))
            if name in spec.get("timing", {}).get("latencyNs", {})
        } | {
            (one["metric"], one["statistic"], one["unit"], one["value"], one.get("sampleCount"))
            for one in spec.get("measurements", [])
        }
        assert found[row["id"]] == expected
        primary = (row["primaryMetric"], row["primaryStatistic"], row["primaryUnit"], row["primaryValue"])
        assert primary in {figure[:4] for figure in expected}
        assert row["sampleCount"] == samples


def test_record_events_are_the_falls_of_the_cohorts_bests(tables: dict[str, list[Row]]) -> None:
    runs = {row["id"]: row for row in tables["benchmark_runs"]}
    first = Counter(row["comparisonKey"] for row in tables["record_events"] if row["previousRunId"] is None)
    assert set(first.values()) == {1}
    assert set(first) == {row["comparisonKey"] for row in tables["record_events"]}
    for row in tables["record_events"]:
        run = runs[row["runId"]]
        assert (row["policyVersion"], row["cause"]) == ("ranking-v1", "new_run")
        assert (row["at"], row["comparisonKey"]) == (run["observedAt"], run["comparisonKey"])
        if row["previousRunId"] is not None:
            previous = runs[row["previousRunId"]]
            assert previous["comparisonKey"] == row["comparisonKey"]
            assert previous["primaryValue"] > run["primaryValue"]
            assert previous["observedAt"] <= run["observedAt"]


def test_the_catalogue_has_every_run_with_a_document_and_what_it_leads_to(
    home: Path, tables: dict[str, list[Row]]
) -> None:
    with required(Home(home)).open() as connection:
        runs = dict(connection.execute("select run_id, run_digest from runs where run_digest is not null").fetchall())
        (implementations, workloads, problems, authors, artifacts) = connection.execute(
            "select (select count(*) from implementations), (select count(distinct workload_digest) from cases), "
            "(select count(distinct problem_digest) from problems), (select count(*) from authors), "
            "(select count(*) from artifacts)"
        ).fetchall()[0]
    assert {row["id"]: row["runDigest"] for row in tables["benchmark_runs"]} == {
        str(uuid.uuid5(NAMESPACE, f"benchmark_runs/{run_id}")): digest for run_id, digest in runs.items()
    }
    assert [len(tables[name]) for name in ("implementations", "workloads", "operations", "projects", "artifacts")] == [
        implementations, workloads, problems, authors, artifacts
    ]  # fmt: skip


def test_documents_have_the_names_that_a_record_page_shows(home: Path, tables: dict[str, list[Row]]) -> None:
    shown: dict[str, Row] = {}
    for row in tables["benchmark_runs"]:
        kind = f"{row['sourceId']} {row['primaryMetric']}"
        if kind not in shown:
            shown[kind] = as_json(home, "show", row["runDigest"], "--manifest")
            assert shown[kind] == row["manifest"]
    assert len(shown) == 3
    for row in (*tables["operations"], *tables["workloads"], *tables["implementations"], *tables["projects"]):
        assert set(row["manifest"]["metadata"]) <= {"name", "title", "authors"}
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row["manifest"]["metadata"]["name"])
    for row in tables["projects"]:
        assert row["manifest"]["spec"]["name"] == row["name"]
        assert row["manifest"]["metadata"]["name"] == row["slug"]


def test_times_are_in_utc_and_nothing_but_the_snapshots_own_says_when_it_was_made(
    home: Path, tables: dict[str, list[Row]]
) -> None:
    with required(Home(home)).open() as connection:
        made = connection.execute("select instant(created_at) from snapshot").fetchall()[0][0]
    for rows in tables.values():
        for row in rows:
            for name in ("createdAt", "publishedAt"):
                assert row.get(name, made) == made
            for name in ("observedAt", "at"):
                value = row.get(name)
                assert value is None or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value)


def test_terms_and_licences_are_those_of_the_sources(tables: dict[str, list[Row]]) -> None:
    assert [row["slug"] for row in tables["sources"]] == ["gpumode-kernelbot", "sol-execbench"]
    for row in tables["sources"]:
        assert list(row["policy"]) == ["license", "attribution", "url", "terms", "freshnessDays"]
        assert all(row["policy"].values())
    for row in tables["implementations"]:
        assert (row["licenseExpression"], row["licenseDeclared"]) == ("unknown", "unknown")
    for row in tables["artifacts"]:
        assert (row["license"], row["uri"]) == ("unknown", None)


def test_reading_in_small_pieces_gives_the_same_lines(
    small_home: SmallHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = required(Home(small_home.home))
    exports.export(snapshot, tmp_path / "whole", catalogue.FORM, catalogue.write)
    monkeypatch.setattr(exports, "BATCH_ROWS", 500)
    exports.export(snapshot, tmp_path / "pieces", catalogue.FORM, catalogue.write)
    assert list(lines_of(tmp_path / "whole")) == list(lines_of(tmp_path / "pieces"))


@pytest.mark.skipif(not SHARED, reason="KERNELMART_CONFORMANCE does not name a folder with real results")
def test_the_real_catalogue_has_the_digests_that_the_registry_publishes(real_home: Path, tmp_path: Path) -> None:
    printed(real_home, "export", "--format", "kernelindex", "--to", str(tmp_path / "out"))
    found: Counter[tuple[Any, ...]] = Counter()
    for line in lines_of(tmp_path / "out"):
        entry = json.loads(line)
        if entry["table"] == "benchmark_runs":
            row, spec = entry["row"], entry["row"]["manifest"]["run"]["spec"]
            found[
                (
                    row["runDigest"], row["protocolKey"], row["environmentKey"], row["comparisonKey"],
                    spec["workloadDigest"], spec["implementationDigest"], row["primaryValue"], row["observedAt"],
                )
            ] += 1  # fmt: skip
    with (Path(SHARED or "") / "data" / "dumps" / "expected_runs.jsonl").open(encoding="utf-8") as file:
        expected = Counter(
            tuple(
                json.loads(line)[name]
                for name in (
                    "run_digest", "protocol_digest", "environment_digest", "comparison_key", "workload_digest",
                    "implementation_digest", "primary_value", "observed_at",
                )
            )
            for line in file
        )  # fmt: skip
    assert found == expected
    assert len(expected) > 3_000
