"""What KernelBot's boards, cases, protocols, environments and runs are called and made of."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assets.expressions import ExpressionError
from assets.kernelbot import documents
from assets.kernelbot.facts import boards_as_documents, load_boards
from tests import oracle, oracle_kernelbot
from warehouse.identity import canonical_json, document

CONFORMANCE = os.environ.get("KERNELMART_CONFORMANCE")
BOARDS = load_boards()
FACTS = {board["leaderboard"]: board for board in boards_as_documents()}
PER_CASE = sorted(name for name, board in BOARDS.items() if board.scoring == "per_case")


@pytest.mark.parametrize(
    ("label", "vendor", "product", "architecture"),
    [
        ("AMD Instinct MI300X", "amd", "AMD Instinct MI300X", "gfx942"),
        ("MI300", "amd", "AMD Instinct MI300X", "gfx942"),
        ("AMD Instinct MI325X", "amd", "AMD Instinct MI325X", "gfx942"),
        ("MI355X", "amd", "AMD Instinct MI355X", "gfx950"),
        ("B200", "nvidia", "NVIDIA B200", "sm_100"),
        ("B200_Nebius", "nvidia", "NVIDIA B200", "sm_100"),
        ("NVIDIA", "nvidia", "NVIDIA B200", "sm_100"),
        ("H100", "nvidia", "NVIDIA H100", "sm_90"),
        ("A100", "nvidia", "NVIDIA A100", "sm_80"),
        ("L4", "nvidia", "NVIDIA L4", "sm_89"),
        ("T4", "nvidia", "NVIDIA T4", "sm_75"),
    ],
)
def test_a_listed_label_names_its_machine(label: str, vendor: str, product: str, architecture: str) -> None:
    assert documents.hardware(label) == documents.Hardware(vendor, product, architecture, known=True)


@pytest.mark.parametrize(
    ("label", "vendor"),
    [
        ("MI400", "amd"),
        ("super mi4", "amd"),
        ("NVIDIA MI300", "amd"),
        ("nvidia b300", "nvidia"),
        ("NvIdIa", "nvidia"),
        ("RTX 5090", "nvidia"),
        ("rtx", "nvidia"),
        ("b300", "nvidia"),
        ("H200", "nvidia"),
        ("a10", "nvidia"),
        ("l40s", "nvidia"),
        ("T1000", "nvidia"),
        ("G4", "unknown"),
        ("my H100", "unknown"),
        ("mint", "unknown"),
        ("mi", "unknown"),
        ("m\u01301", "unknown"),
        ("mi\u0663", "unknown"),
        ("h100", "nvidia"),
        ("mi300", "amd"),
        (" MI300", "amd"),
    ],
)
def test_any_other_label_is_its_own_product_of_unknown_architecture(label: str, vendor: str) -> None:
    assert documents.hardware(label) == documents.Hardware(vendor, label, "unknown", known=False)
    assert documents.environment(label, aggregate=False) == {
        "hardware": {"vendor": vendor, "product": label, "architecture": "unknown"},
        "software": {},
    }


def test_fleets_with_one_gpu_stay_apart_on_aggregate_boards_alone() -> None:
    def digest(label: str, aggregate: bool) -> str:
        return document("ExecutionEnvironment", documents.environment(label, aggregate=aggregate))[1]

    assert digest("B200", False) == digest("B200_Nebius", False) == digest("NVIDIA", False)
    assert len({digest(label, True) for label in ("B200", "B200_Nebius", "NVIDIA")}) == 3
    assert documents.environment("MI300", aggregate=True)["hardware"]["formFactor"] == "runner:MI300"
    assert "formFactor" not in documents.environment("MI300", aggregate=False)["hardware"]


@pytest.mark.parametrize("statistic", [None, "geomean", "mean", "last", "unspecified"])
def test_a_protocol_is_the_oracles(statistic: str | None) -> None:
    made = documents.protocol(statistic)
    assert made == oracle_kernelbot.protocol(statistic)["spec"]
    assert made["measurement"]["primaryStatistic"] == (statistic or "mean")


def test_per_case_means_and_aggregate_means_are_measured_by_two_protocols() -> None:
    protocols = [
        document("BenchmarkProtocol", documents.protocol(statistic))[1] for statistic in (None, "mean", "last")
    ]
    assert len(set(protocols)) == 3


def test_protocols_have_names_and_titles() -> None:
    assert documents.protocol_metadata(None) == {
        "name": "gpumode-kernelbot-eval",
        "title": "GPU MODE KernelBot evaluation harness",
    }
    assert documents.protocol_metadata("geomean") == {
        "name": "gpumode-kernelbot-leaderboard-geomean",
        "title": "GPU MODE KernelBot ranked leaderboard run",
    }


@pytest.mark.parametrize(
    ("label", "aggregate", "name", "title"),
    [
        ("MI300", False, "gpumode-kernelbot-mi300", "KernelBot runner · AMD Instinct MI300X"),
        ("MI300", True, "gpumode-kernelbot-mi300", "KernelBot runner · AMD Instinct MI300X (MI300)"),
        ("B200_Nebius", True, "gpumode-kernelbot-b200-nebius", "KernelBot runner · NVIDIA B200 (B200_Nebius)"),
        (
            "AMD Instinct MI300X",
            True,
            "gpumode-kernelbot-amd-instinct-mi300x",
            "KernelBot runner · AMD Instinct MI300X",
        ),
        ("RTX 5090", True, "gpumode-kernelbot-rtx-5090", "KernelBot runner · RTX 5090"),
    ],
)
def test_environments_have_names_and_titles(label: str, aggregate: bool, name: str, title: str) -> None:
    assert documents.environment_metadata(label, aggregate=aggregate) == {"name": name, "title": title}


def test_runs_have_names_and_titles() -> None:
    assert documents.run_metadata("amd-fp8-mm", 7, 3, {"m": 1024, "k": 7168, "Case": "Mixed up"}) == {
        "name": "kernelbot-7-casemixed-up-k7168-m1024",
        "title": "amd-fp8-mm · submission 7 · case 3",
    }
    assert documents.run_metadata("trimul", 7, None, None) == {
        "name": "kernelbot-7-leaderboard",
        "title": "trimul · submission 7 · leaderboard score",
    }
    long = documents.run_metadata("b", 7, 0, {f"axis{i}": i for i in range(40)})["name"]
    assert len(long) == 100
    # Cut inside the value of an axis, but never at a hyphen.
    assert documents.run_metadata("b", 7, 0, {"a" * 87: 1, "b": 2})["name"] == "kernelbot-7-" + "a" * 87 + "1"
    assert documents.run_metadata("b", 7, 0, {})["name"] == "kernelbot-7"


def test_a_board_without_facts_imitates_no_registry_document() -> None:
    assert json.loads(documents.problem_document("qr", None)[0]) == {
        "apiVersion": "kernelmart/v1",
        "kind": "Problem",
        "spec": {"source": "gpumode-kernelbot", "problem": "qr"},
    }
    assert json.loads(documents.suite_document("qr", None)[0]) == {
        "apiVersion": "kernelmart/v1",
        "kind": "Suite",
        "spec": {"problem": "qr", "statistic": "unspecified"},
    }
    workload = documents.workload_case(
        "qr", None, "N: 4; case : mixed ;z:; big: 9007199254740992; t: 1:2; neg: -5; o: 08"
    )
    axes = {"n": 4, "case": "mixed", "z": "", "big": "9007199254740992", "t": "1:2", "neg": -5, "o": "08"}
    assert json.loads(workload.document) == {
        "apiVersion": "kernelmart/v1",
        "kind": "Case",
        "spec": {"problem": "qr", "axes": axes},
    }
    assert (json.loads(workload.axes), workload.tensors) == (axes, None)
    assert workload.digest == oracle.sha256(workload.document)


def test_a_board_with_facts_but_no_suite_has_a_suite_of_ours() -> None:
    board = BOARDS["amd-fp8-mm"]
    assert documents.suite_document("amd-fp8-mm", board) == documents.suite_document("amd-fp8-mm", None)
    assert documents.problem_document("amd-fp8-mm", board)[1] == board.problem_digest


def test_a_case_with_facts_binds_every_symbol() -> None:
    spec = "m: 1024; n: 1536; k: 7168; seed: 8135"
    workload = documents.workload_case("amd-fp8-mm", BOARDS["amd-fp8-mm"], spec)
    tensors = json.loads(workload.tensors or "")
    assert tensors["a_scale"] == {"dtype": "fp32", "shape": [1024, 56]}
    assert tensors["b_scale"] == {"dtype": "fp32", "shape": [12, 56]}
    assert json.loads(workload.axes) == {"m": 1024, "n": 1536, "k": 7168, "seed": 8135}
    assert workload.document == canonical_json(oracle_kernelbot.workload_case(FACTS["amd-fp8-mm"], spec))
    again = documents.workload_case("amd-fp8-mm", BOARDS["amd-fp8-mm"], " SEED:8135;K :7168;N: 1536 ; M: 1024; ")
    assert again == workload


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (None, "SPEC_MISSING"),
        ("", "SPEC_MISSING"),
        (" \t", "SPEC_MISSING"),
        (";", "SPEC_FORM"),
        (";;m: 1", "SPEC_FORM"),
        ("m: 1;;n: 2", "SPEC_FORM"),
        ("m 1", "SPEC_FORM"),
        (": 1", "SPEC_FORM"),
        ("m: 1; M: 1", "SPEC_COLLISION"),
        ("m: 1; m : 2;", "SPEC_COLLISION"),
    ],
)
def test_a_spec_that_cannot_be_read_rejects_the_case_with_and_without_facts(spec: str | None, reason: str) -> None:
    for board in (None, BOARDS["amd-fp8-mm"]):
        with pytest.raises(ExpressionError) as raised:
            documents.workload_case("amd-fp8-mm", board, spec)
        assert raised.value.code == reason


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ("m: mixed", "SPEC_VALUE"),
        ("m: [80, 176]", "SPEC_VALUE"),
        ("m: true", "SPEC_VALUE"),
        ("m: 08", "SPEC_VALUE"),
        ("m: +8", "SPEC_VALUE"),
        ("m: 8.0", "SPEC_VALUE"),
        ("m: ", "SPEC_VALUE"),
        ("m: ٨", "SPEC_VALUE"),
        ("m: 1:2", "SPEC_VALUE"),
        ("m: 9007199254740992", "NUMBER_OUT_OF_RANGE"),
        ("m: -9007199254740992", "NUMBER_OUT_OF_RANGE"),
        (f"m: {'9' * 5000}", "NUMBER_OUT_OF_RANGE"),
        ("other: 8", "UNBOUND_AXIS"),
    ],
)
def test_a_value_that_binds_no_axis_rejects_the_case_of_a_board_with_facts(values: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        documents.workload_case("amd-fp8-mm", BOARDS["amd-fp8-mm"], f"{values}; n: 1; k: 128; seed: 0")
    assert raised.value.code == reason


def test_the_largest_integers_are_bound() -> None:
    spec = "m: 9007199254740991; n: -9007199254740991; k: 0; seed: -0"
    assert documents.parse_spec(spec) == {"m": 2**53 - 1, "n": -(2**53) + 1, "k": 0, "seed": 0}
    workload = documents.workload_case("amd-fp8-mm", BOARDS["amd-fp8-mm"], spec)
    assert workload.axes == '{"k":0,"m":9007199254740991,"n":-9007199254740991,"seed":0}'


SPECS = st.one_of(
    st.lists(
        st.tuples(
            st.sampled_from(["m", "n", "k", "seed", "M", " bs ", "x y", ""]),
            st.sampled_from([":", " : ", "", "::"]),
            st.one_of(
                st.integers(-(2**54), 2**54).map(str),
                st.sampled_from(["", "a", "08", "-0", "1.5", "[1, 2]", "a:b", " 7 "]),
            ),
        ).map("".join),
        max_size=6,
    ).map(";".join),
    st.text("mnk:;0189- \t\u00a0é", max_size=20),
)


@settings(deadline=None, max_examples=400)
@given(SPECS, st.sampled_from([None, *PER_CASE]))
@example("m: 1;n: 2;k: 3;seed: 4;", "amd-fp8-mm")
def test_every_spec_gives_the_oracles_case_or_its_reason(spec: str, name: str | None) -> None:
    def wanted() -> tuple[str, str]:
        try:
            case = (
                oracle_kernelbot.workload_case(FACTS[name], spec) if name else oracle_kernelbot.plain_case("new", spec)
            )
        except oracle.Rejected as rejected:
            return "rejected", rejected.reason
        return "made", oracle.canonical(case)

    def made() -> tuple[str, str]:
        try:
            return "made", documents.workload_case(name or "new", BOARDS[name] if name else None, spec).document
        except ExpressionError as error:
            return "rejected", error.code

    assert made() == wanted()


@pytest.mark.skipif(not CONFORMANCE, reason="KERNELMART_CONFORMANCE is not set")
def test_the_golden_documents_are_made_from_names_and_labels() -> None:
    entries: list[dict[str, Any]] = json.loads(Path(str(CONFORMANCE), "golden/documents.json").read_bytes())
    golden = [entry for entry in entries if entry["what"].startswith("KernelBot") and "document" in entry]
    labels = [("MI300", False), ("MI355X", True)]
    made = {
        *(documents.problem_document(name, board) for name, board in BOARDS.items()),
        *(documents.suite_document(name, board) for name, board in BOARDS.items()),
        *(document("BenchmarkProtocol", documents.protocol(statistic)) for statistic in (None, "geomean")),
        *(
            document("ExecutionEnvironment", documents.environment(label, aggregate=aggregate))
            for label, aggregate in labels
        ),
    }
    checked = 0
    for entry in golden:
        text = canonical_json(entry["document"])
        if entry["document"]["kind"] == "WorkloadCase":
            spec = "; ".join(f"{name}: {value}" for name, value in entry["document"]["spec"]["axes"].items())
            cases = [documents.workload_case(name, BOARDS[name], spec) for name in ("amd-fp8-mm",)]
            made |= {(case.document, case.digest) for case in cases}
        if entry["document"]["kind"] not in ("ImplementationRevision", "BenchmarkRun"):
            assert (text, entry["digest"]) in made, entry["what"]
            checked += 1
    assert checked == 8


def test_no_two_boards_share_a_digest() -> None:
    digests = [documents.problem_document(name, board)[1] for name, board in BOARDS.items()]
    digests += [documents.problem_document(name, None)[1] for name in BOARDS]
    same = [
        names
        for names in itertools.combinations(BOARDS, 2)
        if len({BOARDS[name].problem_digest for name in names}) == 1
    ]
    # The one problem that two leaderboards have.
    assert same == [("modal_nvfp4_dual_gemm", "nvfp4_dual_gemm")]
    assert len(set(digests)) == len(digests) - 1
