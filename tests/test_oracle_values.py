"""What the oracle makes of single values and documents, by rules that no vector shows."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests import oracle, oracle_kernelbot, oracle_sol
from tests.kernelbot_folder import board


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
