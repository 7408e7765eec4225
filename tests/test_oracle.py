"""The oracle gives every vector that the registry's rules come with, and the rules that no vector shows."""

from __future__ import annotations

import itertools
import json
import os
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import oracle, oracle_kernelbot, oracle_kernelbot_files, oracle_sol
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

# --- the shared vectors ---------------------------------------------------------------------------------------


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


# --- rules of one value ---------------------------------------------------------------------------------------


def test_an_instant_is_cut_off_and_without_a_zone_is_utc() -> None:
    assert oracle.instant(oracle.moment(datetime(2025, 6, 1, 9, 11, 14, 635999))) == "2025-06-01T09:11:14.635Z"
    assert oracle.instant(oracle.moment("2025-06-01T11:11:14.635999+02:00")) == "2025-06-01T09:11:14.635Z"
    assert oracle.instant(oracle.moment("2025-06-01T09:11:14")) == "2025-06-01T09:11:14.000Z"
    with pytest.raises(oracle.Rejected, match="BAD_TIME"):
        oracle.moment("yesterday")


def test_nanoseconds_are_rounded_half_up_in_doubles() -> None:
    assert [oracle.rounded(value) for value in (4175913.45, 0.5, 1.5, 2.5, 0.49999999999999994)] == [
        4175913,
        1,
        2,
        3,
        1,
    ]
    assert oracle.rounded(1e16) is None


def test_figures_that_do_not_count_are_absent_and_flagged() -> None:
    raw = {"mean": "nan", "best": "-1", "worst": "1e400", "std": "0", "runs": "2.5"}
    counted, flags = oracle.figures(raw, oracle_kernelbot.CASE_FIGURES)
    assert counted == {"std": 0}
    assert flags == ["NOT_FINITE:mean", "OUT_OF_RANGE:best", "NOT_FINITE:worst", "OUT_OF_RANGE:runs"]


@pytest.mark.parametrize(
    ("label", "vendor", "product", "architecture"),
    [
        ("MI300", "amd", "AMD Instinct MI300X", "gfx942"),
        ("NVIDIA", "nvidia", "NVIDIA B200", "sm_100"),
        ("L4", "nvidia", "NVIDIA L4", "sm_89"),
        ("super MI400", "amd", "super MI400", "unknown"),
        ("b300", "nvidia", "b300", "unknown"),
        ("RTX 5090", "nvidia", "RTX 5090", "unknown"),
        ("mint", "unknown", "mint", "unknown"),
        ("my H100", "unknown", "my H100", "unknown"),
    ],
)
def test_a_label_names_a_machine(label: str, vendor: str, product: str, architecture: str) -> None:
    assert oracle_kernelbot.hardware(label) == oracle.Hardware(vendor, product, architecture)


def test_sol_names_of_machines() -> None:
    assert oracle_sol.hardware("NVIDIA_H100") == oracle.Hardware("nvidia", "NVIDIA H100", "sm_90")
    assert oracle_sol.hardware("GB200") == oracle.Hardware("nvidia", "NVIDIA GB200", "sm_100")
    assert oracle_sol.hardware("RTX_PRO_6000") == oracle.Hardware("nvidia", "RTX PRO 6000", "unknown")


def test_an_expression_has_the_operators_of_integers() -> None:
    values = {"a": 7, "b": -3}
    assert oracle.evaluate("((a + 255) // 256) * 256", values.__getitem__) == 256
    assert oracle.evaluate("b // 2 + a % 4 - 1", values.__getitem__) == 0
    for wrong in ("a ** 2", "a / 2", "(a", "a b", "", "a // 0", "a(a)", "1.5"):
        with pytest.raises(oracle.Rejected, match="BAD_EXPRESSION"):
            oracle.evaluate(wrong, values.__getitem__)


def test_derived_axes_bind_in_any_order_and_never_in_a_circle() -> None:
    axes = {
        "quarter": {"role": "derived", "expression": "half // 2"},
        "half": {"role": "derived", "expression": "size // 2"},
        "one": {"role": "derived", "expression": "two"},
        "two": {"role": "derived", "expression": "one"},
        "big": {"role": "derived", "expression": "size * 9007199254740991"},
    }
    assert oracle.bound_shape(["quarter", 3], axes, {"size": 8}) == [2, 3]
    for symbol, reason in (("one", "UNBOUND_AXIS"), ("missing", "UNBOUND_AXIS"), ("big", "NUMBER_OUT_OF_RANGE")):
        with pytest.raises(oracle.Rejected, match=reason):
            oracle.bind(symbol, axes, {"size": 8})


def test_a_case_without_facts_keeps_words_and_big_numbers_as_text() -> None:
    doc = oracle_kernelbot.plain_case(
        "new", "M: 8; case: mixed; dims: [1, 2]; n: -0; z:; big: 9007199254740992; t: 1:2;"
    )
    assert doc["apiVersion"] == "kernelmart/v1"
    axes = doc["spec"]["axes"]
    assert axes == {
        "m": 8, "case": "mixed", "dims": "[1, 2]", "n": 0, "z": "", "big": "9007199254740992", "t": "1:2"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (None, "SPEC_MISSING"),
        (" ", "SPEC_MISSING"),
        ("size 8", "SPEC_FORM"),
        ("size: 8; SIZE: 9", "SPEC_COLLISION"),
        ("size: 08", "SPEC_VALUE"),
        ("size: 9007199254740992", "NUMBER_OUT_OF_RANGE"),
        ("other: 1", "UNBOUND_AXIS"),
    ],
)
def test_a_case_with_facts_is_rejected_with_its_reason(spec: str | None, reason: str) -> None:
    with pytest.raises(oracle.Rejected, match=reason):
        oracle_kernelbot.workload_case(board("sum", scoring="per_case"), spec)


def test_axes_are_collated_underscore_then_digits_then_letters() -> None:
    assert sorted(["ab", "a1", "a_", "B", "a"], key=oracle_sol.collation) == ["a", "a_", "a1", "ab", "B"]


def test_a_kernel_with_every_kind_of_input() -> None:
    definition = {
        "op_type": "Group Norm",
        "axes": {"B": {"type": "var"}, "Half": {"type": "expr", "expression": "B // 2"}},
        "inputs": {
            "X": {"shape": ["Half", "16", 4], "dtype": "bfloat16"},
            "1w": {"shape": ["B"], "dtype": "Weird-Type"},
            "eps": {"shape": [], "dtype": "float"},
        },
        "outputs": {"out": {"shape": ["B"], "dtype": "half"}},
        "reference": "def run(): ...",
    }
    spec = oracle_sol.operation(definition)["spec"]
    assert spec["family"] == "group-norm"
    assert spec["axes"]["half"] == {"role": "derived", "type": "integer", "expression": "b // 2"}
    assert spec["reference"] == {"language": "python"}
    assert spec["inputs"] == [
        {"name": "x", "tensor": {"shape": ["half", 16, 4], "dtype": "bf16"}},
        {"name": "x_1w", "tensor": {"shape": ["b"], "dtype": "weird_type"}},
        {"name": "eps", "scalar": {"dtype": "fp32"}},
    ]
    workload = {
        "uuid": "some-uuid",
        "axes": {"B": 8},
        "inputs": {"X": {"type": "safetensors"}, "1w": {"type": "other"}, "eps": {"type": "scalar", "value": 1e-5}},
        "tolerance": {"max_atol": 0, "max_rtol": None},
    }
    case = oracle_sol.workload_case(definition, workload)["spec"]
    assert case["tensors"]["x"] == {"dtype": "bf16", "shape": [4, 16, 4], "data": {"generator": "safetensors"}}
    assert case["tensors"]["x_1w"]["data"] == {"generator": "random"}
    assert case["scalars"] == {"eps": {"dtype": "fp32", "value": 1e-5}}
    assert case["correctness"] == {"comparator": "sol_execbench_eval", "maxAbsoluteError": 0}
    assert oracle_sol.case_id(workload) == "some-uuid"


def test_names_that_come_out_alike_reject_a_kernel() -> None:
    arguments = {"a-b": {"shape": [1], "dtype": "float"}, "a_b": {"shape": [1], "dtype": "float"}}
    with pytest.raises(oracle.Rejected, match="NAME_COLLISION"):
        oracle_sol.arguments(arguments)
    with pytest.raises(oracle.Rejected, match="NAME_COLLISION"):
        oracle_sol.lowered({"N": 1, "n": 2})


# --- rules of whole folders -----------------------------------------------------------------------------------


def board(name: str, scoring: str) -> Json:
    suite = {"statistic": "geomean", "cases": [{"externalId": "0", "axes": {"size": 4}}]}
    return {
        "leaderboard": name,
        "upstream_id": 7,
        "slug": f"board-{name}",
        "title": name,
        "tags": [],
        "family": "reduction",
        "scoring": scoring,
        "ranking_by": "geom",
        "axes": {"size": {"role": "variable", "type": "integer"}},
        "inputs": [{"name": "x", "tensor": {"shape": ["size"], "dtype": "fp32"}}],
        "outputs": [{"name": "y", "tensor": {"shape": [1], "dtype": "fp32"}}],
        "semantics": {"mutation": "none", "determinism": "unspecified"},
        "suite": suite if scoring == "aggregate" else None,
    }


def write_rows(folder: Path, name: str, rows: list[Json]) -> None:
    target = folder / "kernelbot"
    target.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), target / f"{name}.parquet")


def case_row(submission_id: int, run_id: int | None = 1, score: float = 0.5, **other: Json) -> Json:
    figures = {"spec": "size: 4", "mean": "1000.5", "runs": "3"}
    return {
        "submission_id": submission_id,
        "leaderboard_id": 7,
        "user_id": 3,
        "submission_time": datetime(2025, 1, 1),
        "run_id": run_id,
        "run_mode": "leaderboard",
        "run_score": score,
        "run_passed": True,
        "run_result": {f"benchmark.0.{name}": value for name, value in figures.items()},
        "run_system_info": {"gpu": "MI300", "torch": "2.8"},
    } | other


def score_row(submission_id: int, score: float | None, **other: Json) -> Json:
    return {
        "submission_id": submission_id,
        "leaderboard_id": 7,
        "problem_name": "sum",
        "user_id": "3",
        "submission_time": datetime(2025, 1, 1),
        "status": "succeeded",
        "score": score,
        "passed": True,
        "mode": "leaderboard",
        "runner": "B200",
    } | other


def test_a_run_in_several_files_counts_once_and_a_stray_one_is_kept(tmp_path: Path) -> None:
    write_rows(tmp_path, "successful_submissions", [case_row(1), case_row(2), case_row(2)])
    write_rows(tmp_path, "submissions", [case_row(1, user_id=9), case_row(3, score=0.7), case_row(3, score=0.6)])
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    assert sorted(run["submission_id"] for run in tables["runs"]) == [1, 2, 3]
    assert tables["files"]["submissions.parquet"] == {"read": 3, "kept": 2, "duplicate": 1, "rejected": 0}
    assert tables["files"]["successful_submissions.parquet"] == {"read": 3, "kept": 1, "duplicate": 2, "rejected": 0}
    conflicts = [(entry["locator"], entry["submission_id"]) for entry in tables["conflicts"]]
    assert conflicts == [("submissions.parquet", 3), ("successful_submissions.parquet", 2)]
    first = {run["submission_id"]: run for run in tables["runs"]}[1]
    assert (first["locator"], first["author_key"][-2:]) == ("submissions.parquet", "/9")


def test_a_run_without_an_id_is_named_by_its_mode_and_content(tmp_path: Path) -> None:
    write_rows(tmp_path, "submissions", [case_row(1, run_id=None)])
    (run,) = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})["runs"]
    content = (
        '{"run_passed":true,"run_result":{"benchmark.0.mean":"1000.5","benchmark.0.runs":"3",'
        '"benchmark.0.spec":"size: 4"},"run_score":0.5}'
    )
    key = f"leaderboard-{oracle.sha256(content)[7:19]}"
    assert run["run_id"] == f"gpumode-kernelbot:submission/1/run/{key}/benchmark/0"
    assert run["external_id"] == "submission/1/benchmark/0"


def test_the_best_of_several_scores_on_one_runner_is_kept(tmp_path: Path) -> None:
    rows = [
        score_row(1, 0.1, mode="test"),
        score_row(1, 0.2, passed=False),
        score_row(1, 0.4),
        score_row(1, 0.3),
        score_row(1, 0.9, runner="H100"),
    ]
    write_rows(tmp_path, "new_submissions", rows)
    tables = oracle.read(tmp_path, {"boards": [board("sum", "aggregate")]})
    assert {run["runner"]: run["primary_value"] for run in tables["runs"]} == {"B200": 0.3, "H100": 0.9}
    assert tables["files"]["new_submissions.parquet"]["duplicate"] == 3
    assert tables["submissions"][0]["score_s"] == 0.3


def test_each_reason_against_a_run_is_given(tmp_path: Path) -> None:
    rows = [
        score_row(1, None, passed=None, mode=None, runner=None),
        score_row(2, 0.1, status="hacked"),
        score_row(3, 4.6e-25),
        score_row(4, 0.1, passed=False, mode="profile.0"),
    ]
    write_rows(tmp_path, "new_submissions", rows)
    tables = oracle.read(tmp_path, {"boards": []})
    found = {run["submission_id"]: (run["status"], run["ineligible_reasons"]) for run in tables["runs"]}
    assert found == {
        1: ("unknown", ["NOT_PASSED", "MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT"]),
        2: ("revoked", ["REVOKED"]),
        3: ("passed", ["BELOW_FLOOR"]),
        4: ("failed", ["NOT_PASSED", "MODE_PROFILE"]),
    }
    has_document = {run["submission_id"]: run["run_digest"] is not None for run in tables["runs"]}
    assert has_document == {1: False, 2: False, 3: True, 4: False}
    assert tables["ranks"] == []
    (problem,) = tables["problems"]
    assert (problem["slug"], problem["family"], problem["curated"]) == ("kernelmart-sum", "uncategorized", False)


def test_a_run_that_did_not_pass_says_why(tmp_path: Path) -> None:
    failed = {"run_passed": False}
    rows = [
        case_row(1, **failed, run_compilation={"success": False}, run_meta={"success": False, "stdout": "x"}),
        case_row(2, **failed, run_meta={"success": False, "stdout": "x"}),
        case_row(3, **failed, run_result={"check": "fail"}),
        case_row(4, **failed),
        case_row(5, run_passed=None),
    ]
    write_rows(tmp_path, "submissions", rows)
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    statuses = {run["submission_id"]: run["status"] for run in tables["runs"]}
    assert statuses == {1: "compile_error", 2: "runtime_error", 3: "incorrect", 4: "failed", 5: "unknown"}


def test_names_of_a_per_case_run(tmp_path: Path) -> None:
    write_rows(tmp_path, "submissions", [case_row(1)])
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    (documents,) = tables["run_documents"].values()
    assert documents["run"]["metadata"] == {
        "name": "kernelbot-1-size4",
        "title": "sum · submission 1 · case 0",
        "labels": {"torch": "2.8"},
    }
    assert documents["protocol"]["metadata"]["name"] == "gpumode-kernelbot-eval"
    assert documents["environment"]["metadata"] == {
        "name": "gpumode-kernelbot-mi300",
        "title": "KernelBot runner · AMD Instinct MI300X",
    }
    assert documents["run"]["spec"]["timing"] == {
        "primaryStatistic": "mean",
        "samples": 3,
        "latencyNs": {"mean": 1001},
    }
    assert "measurements" not in documents["run"]["spec"]


def test_a_rejected_case_leaves_the_rest_of_its_row(tmp_path: Path) -> None:
    result = {"benchmark.0.spec": "size: x", "benchmark.0.mean": "5", "benchmark.2.spec": "size: 4"}
    write_rows(tmp_path, "submissions", [case_row(1, run_result=result), case_row(2, run_result=None)])
    tables = oracle.read(tmp_path, {"boards": [board("sum", "per_case")]})
    rejected = [(row["locator"], row["item"], row["reason"]) for row in tables["rejects"]]
    assert rejected == [("submissions.parquet", "0/benchmark/0", "SPEC_VALUE")]
    assert [run["run_id"].split(":")[1] for run in tables["runs"]] == [
        "submission/1/run/1/benchmark/2",
        "submission/2/run/1",
    ]
    assert tables["runs"][0]["ineligible_reasons"] == ["NO_VALUE"]


def test_sources_that_are_read_make_an_identity_final(tmp_path: Path) -> None:
    write_rows(tmp_path, "new_submissions", [score_row(1, 0.1, code="a\r\n"), score_row(2, 0.1, code=None)])
    facts = {"boards": [board("sum", "aggregate")]}
    assert {run["identity"] for run in oracle.read(tmp_path, facts)["runs"]} == {"provisional"}
    tables = oracle.read(tmp_path, facts, code=True)
    assert {run["identity"] for run in tables["runs"]} == {"final"}
    assert [row["document"]["spec"].get("source") for row in tables["implementations"]] == [
        {"contentDigest": oracle.sha256(b"a\r\n"), "sizeBytes": 3},
        None,
    ]


def test_text_that_is_no_utf8_and_ids_that_are_no_integers_reject_a_row(tmp_path: Path) -> None:
    (tmp_path / "kernelbot").mkdir()
    names = pa.array([b"ok.py", b"\xff.py"], pa.binary()).cast(pa.binary())
    bad_text = pa.StringArray.from_buffers(2, names.buffers()[1], names.buffers()[2])
    table = pa.Table.from_pylist([score_row(1, 0.1), score_row(2, 0.1)]).append_column("file_name", bad_text)
    pq.write_table(table, tmp_path / "kernelbot" / "a.parquet")
    write_rows(tmp_path, "b", [score_row("x", 0.1), score_row("12", 0.1)])  # type: ignore[arg-type]
    tables = oracle.read(tmp_path, {"boards": []})
    assert [(row["locator"], row["reason"]) for row in tables["rejects"]] == [
        ("a.parquet", "BAD_TEXT"),
        ("b.parquet", "BAD_ID"),
    ]
    assert sorted(run["submission_id"] for run in tables["runs"]) == [1, 12]


def test_nanoseconds_of_a_time_are_cut_off(tmp_path: Path) -> None:
    times = pa.array([1_748_769_074_635_999_999], pa.timestamp("ns"))
    table = pa.Table.from_pylist([score_row(1, 0.1)]).drop(["submission_time"]).append_column("submission_time", times)
    (tmp_path / "kernelbot").mkdir()
    pq.write_table(table, tmp_path / "kernelbot" / "a.parquet")
    (run,) = oracle.read(tmp_path, {"boards": []})["runs"]
    assert run["observed_at"] == "2025-06-01T09:11:14.635Z"


def write_sol(folder: Path, kernels: dict[int, Json], submissions: dict[str, list[Json]]) -> None:
    for name in ("kernels", "submissions"):
        (folder / "sol_execbench" / name).mkdir(parents=True)
    for kernel_id, definition in kernels.items():
        (folder / f"sol_execbench/kernels/{kernel_id}.json").write_text(json.dumps({"data": definition}))
    for stem, rows in submissions.items():
        (folder / f"sol_execbench/submissions/{stem}.json").write_text(json.dumps({"data": {"submissions": rows}}))


def test_sol_submissions_of_every_kind(tmp_path: Path) -> None:
    case = {"axes": {"n": 4}, "sol_ms": 0.01, "baseline_latency_ms": 1.0}
    kernel = {
        "id": 1,
        "name": "001_plain_sum",
        "tags": ["L1", "model:x", "Sum Up"],
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "workloads": [case, case | {"baseline_latency_ms": 2.0}],
    }
    good = {
        "kernel_id": 1,
        "username": "someone",
        "submission_mode": "release",
        "status": "COMPLETED",
        "is_correct": True,
        "latency_ms": 0.02,
        "sol_score": 0,
        "gpu_type": "B200",
        "submitted_at": "2026-01-01T00:00:00",
    }
    rows = [
        good | {"id": 1},
        good | {"id": 2, "is_disqualified": True},
        good | {"id": 3, "latency_ms": 0.005},
        good | {"id": 4, "latency_ms": 0, "submission_mode": "private", "is_correct": False},
        good | {"id": 5, "kernel_id": 9},
        good | {"id": 6, "username": "a\ud800"},
        "no object",
    ]
    write_sol(
        tmp_path, {1: kernel, 2: kernel, 3: kernel | {"name": "bad", "axes": {"n": 1}}}, {"1": rows, "1.2": rows[:1]}
    )
    tables = oracle.read(tmp_path, {"boards": []})
    assert [(row["locator"], row["item"], row["reason"]) for row in tables["rejects"]] == [
        ("kernels/2.json", "data", "NAME_TAKEN"),
        ("kernels/3.json", "data", "BAD_DEFINITION"),
        ("submissions/1.json", "data/submissions/4", "NO_PROBLEM"),
        ("submissions/1.json", "data/submissions/5", "BAD_TEXT"),
        ("submissions/1.json", "data/submissions/6", "NOT_AN_OBJECT"),
    ]
    found = {run["submission_id"]: (run["status"], run["ineligible_reasons"]) for run in tables["runs"]}
    assert found == {
        1: ("passed", []),
        2: ("revoked", ["REVOKED"]),
        3: ("passed", ["BELOW_SOL_BOUND"]),
        4: ("incorrect", ["NOT_PASSED", "MODE_PRIVATE", "NO_VALUE"]),
    }
    assert tables["runs"][0]["native_metrics"] == {"latency_ms": 0.02, "sol_score": 0}
    assert tables["runs"][3]["flags"] == ["OUT_OF_RANGE:latency_ms"]
    assert [(case["kind"], case["occurrence"]) for case in tables["cases"]] == [("case", 0), ("case", 1), ("suite", 0)]
    (problem,) = tables["problems"]
    assert [problem[name] for name in ("slug", "title", "family")] == ["001-plain-sum", "Plain sum", "sum-up"]
    names = tables["run_documents"]["sol-execbench:submission/1"]
    assert names["run"]["metadata"]["title"] == "someone · 001_plain_sum · B200"
    assert names["environment"]["metadata"]["name"] == "sol-execbench-b200-unknown"


def test_ranks_are_dense_and_an_author_has_one_best() -> None:
    def run(run_id: str, value: int, author: str | None, observed: str | None, submission_id: int) -> Json:
        return {
            "run_id": run_id,
            "comparison_key": "k",
            "primary_value": value,
            "author_key": author,
            "observed_at": observed,
            "submission_id": submission_id,
            "eligible": True,
        }

    runs = [
        run("r1", 200, "a", None, 1),
        run("r2", 200, "a", "2025-01-01T00:00:00.000Z", 10),
        run("r3", 200, "a", "2025-01-01T00:00:00.000Z", 9),
        run("r4", 100, None, None, 2),
        run("r5", 300, "b", None, 3),
    ]
    rows = {row["run_id"]: row for row in oracle.ranks(runs)}
    assert {run_id: row["rank"] for run_id, row in rows.items()} == {"r1": 2, "r2": 2, "r3": 2, "r4": 1, "r5": 3}
    assert {run_id: row["author_rank"] for run_id, row in rows.items() if row["author_best"]} == {"r3": 1, "r5": 2}
    assert (rows["r5"]["percentile"], rows["r5"]["gap_to_best"], rows["r4"]["tied"]) == (1, 3, False)
    assert {(row["cohort_runs"], row["cohort_authors"]) for row in rows.values()} == {(5, 2)}
