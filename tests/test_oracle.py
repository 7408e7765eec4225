"""The oracle gives every vector that the registry's rules come with."""

from __future__ import annotations

import itertools
import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from tests import oracle, oracle_kernelbot, oracle_kernelbot_files
from tests.oracle import Json

TABLE_OF_KIND = {
    "OperationSpec": "problems",
    "WorkloadCase": "cases",
    "WorkloadSuite": "cases",
    "ImplementationRevision": "implementations",
    "BenchmarkProtocol": "protocols",
    "ExecutionEnvironment": "environments",
    "BenchmarkRun": "runs",
}


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = os.environ.get("KERNELMART_CONFORMANCE")
    if not folder:
        pytest.skip("KERNELMART_CONFORMANCE is not set: the folder that holds data/dumps and golden")
    return Path(folder)


@pytest.fixture(scope="session")
def facts(shared: Path) -> Json:
    return json.loads((shared / "upstream/kernelbot_problems.json").read_bytes())


@pytest.fixture(scope="session")
def tables(shared: Path, facts: Json) -> dict[str, Json]:
    return oracle.read(shared / "data/dumps", facts)


def golden(shared: Path, name: str) -> Json:
    return json.loads((shared / "golden" / name).read_bytes())


def vectors(shared: Path, name: str) -> list[Json]:
    return [json.loads(line) for line in (shared / "data/dumps" / name).read_text().splitlines()]


def without_metadata(document: Json) -> Json:
    return {part: document[part] for part in ("apiVersion", "kind", "spec")}


def vector_key(source: str, submission_id: int, case: int | None, runner: str | None, board: str) -> tuple[Json, ...]:
    """What names a run in the vectors, which give no runner for per-case rows."""
    return (source, submission_id, case, None if case is not None else runner, board)


def runs_by_vector_key(tables: dict[str, Json]) -> dict[tuple[Json, ...], Json]:
    return {
        vector_key(run["source"], run["submission_id"], run["case_index"], run["runner"], run["problem"]): run
        for run in tables["runs"]
    }


def key_of(vector: Json) -> tuple[Json, ...]:
    return vector_key(*(vector[name] for name in ("source", "submission_id", "case", "runner", "board")))


def test_every_run_has_the_expected_digests_key_value_and_time(shared: Path, tables: dict[str, Json]) -> None:
    expected = vectors(shared, "expected_runs.jsonl")
    runs = runs_by_vector_key(tables)
    assert len(expected) == 3897
    assert set(runs) == {key_of(vector) for vector in expected}
    compared = [name for name in expected[0] if name not in ("case", "runner", "board")]
    for vector in expected:
        run = runs[key_of(vector)]
        assert {name: run[name] for name in compared} == {name: vector[name] for name in compared}
        assert (run["eligible"], run["ineligible_reasons"], run["identity"]) == (True, [], "final")


def test_every_run_has_the_expected_rank(shared: Path, tables: dict[str, Json]) -> None:
    expected = vectors(shared, "expected_ranks.jsonl")
    runs = runs_by_vector_key(tables)
    ranks = {row["run_id"]: row for row in tables["ranks"]}
    assert len(expected) == len(ranks) == 3897
    for vector in expected:
        run = runs[key_of(vector)]
        found = run | ranks[run["run_id"]]
        compared = [name for name in vector if name not in ("case", "runner", "board")]
        assert {name: found[name] for name in compared} == {name: vector[name] for name in compared}


def test_every_case_has_the_expected_digest(shared: Path, tables: dict[str, Json]) -> None:
    expected = vectors(shared, "expected_cases.jsonl")
    by_kernel: dict[str, list[Json]] = defaultdict(list)
    for case in tables["cases"]:
        if case["source"] == "sol-execbench" and case["kind"] == "case":
            by_kernel[case["problem"]].append(case)
    assert len(expected) == sum(map(len, by_kernel.values())) == 1706
    for vector in expected:
        case = by_kernel[vector["problem"]][vector["position"]]
        found = [case[name] for name in ("axes", "workload_digest", "baseline_latency_ms", "sol_bound_ms")]
        assert found == [vector[name] for name in ("axes", "workload_digest", "baseline_latency_ms", "sol_ms")]


def test_every_golden_document_is_made_and_has_its_digest(shared: Path, tables: dict[str, Json]) -> None:
    made = {name: [row["document"] for row in tables[name]] for name in set(TABLE_OF_KIND.values()) - {"runs"}}
    made["runs"] = [without_metadata(documents["run"]) for documents in tables["run_documents"].values()]
    texts = {name: {oracle.canonical(doc) for doc in documents} for name, documents in made.items()}
    golden_documents = [entry for entry in golden(shared, "documents.json") if "document" in entry]
    assert len(golden_documents) == 20
    for entry in golden_documents:
        assert oracle.document_digest(entry["document"]) == entry["digest"]
        assert oracle.canonical(entry["document"]) in texts[TABLE_OF_KIND[entry["document"]["kind"]]], entry["what"]


def test_golden_keys_come_out(shared: Path, tables: dict[str, Json]) -> None:
    entries = golden(shared, "documents.json")
    runs = {run["run_digest"]: run for run in tables["runs"]}
    correctness = {case["workload_digest"]: case["correctness_key"] for case in tables["cases"]}
    keys = [(before, entry) for before, entry in itertools.pairwise(entries) if "comparison_key" in entry]
    assert len(keys) == 3
    for run_entry, entry in keys:
        run = runs[run_entry["digest"]]
        assert run["comparison_key"] == entry["comparison_key"]
        assert run["primary_value"] == entry["primary_value"]
        assert correctness[run["workload_digest"]] == entry["correctness_key"]


def test_numbers_are_written_as_the_vectors_say(shared: Path) -> None:
    entries = golden(shared, "canonical_numbers.json")
    assert len(entries) == 26
    for entry in entries:
        assert oracle.canonical(float.fromhex(entry["double_hex"])) == entry["canonical"]


def test_published_records_are_made_again(shared: Path, tables: dict[str, Json]) -> None:
    records = golden(shared, "published_records.json")
    runs = {run["run_digest"]: run for run in tables["runs"]}
    assert len(records) == 3
    for record in records:
        run = runs[record["expected"]["run_digest"]]
        made = tables["run_documents"][run["run_id"]]
        for part in ("run", "protocol", "environment"):
            assert oracle.canonical({**record[part], "metadata": made[part]["metadata"]}) == oracle.canonical(
                made[part]
            )
        assert run["labels"] == record["labels"]
        assert {name: run[name] for name in record["expected"]} == record["expected"]


def test_digests_in_the_facts_are_those_of_the_documents(facts: Json) -> None:
    assert len(facts["boards"]) == 28
    for board in facts["boards"]:
        problem = oracle_kernelbot.problem_document(board["leaderboard"], board)
        assert oracle.document_digest(problem) == board["problem_digest"]
        if board["suite"]:
            suite = oracle_kernelbot.workload_suite(board["leaderboard"], board)
            assert oracle.document_digest(suite) == board["suite"]["workload_digest"]


def test_source_bytes_in_each_form_have_one_digest(shared: Path) -> None:
    source = (shared / "golden/submission_746673.py").read_bytes()
    facts_of_source = golden(shared, "submission_746673.json")
    for form in (source, source.decode(), "\\x" + source.hex(), b"\\x" + source.hex().encode()):
        data = oracle_kernelbot_files.source_bytes(form)
        found = (oracle.sha256(data), len(data))
        assert found == (facts_of_source["content_digest"], facts_of_source["size_bytes"])
