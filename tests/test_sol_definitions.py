"""Kernel definitions of SOL-ExecBench become documents exactly as the registry makes them."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assets.sol_execbench.definitions import Kernel, read_kernel, title
from assets.sol_execbench.read import Rejected
from tests import oracle, oracle_sol


def definition(**changes: Any) -> dict[str, Any]:
    """A small kernel with a constant, a derived and a variable axis; None takes a field away."""
    whole: dict[str, Any] = {
        "id": 7,
        "name": "007_scaled_copy",
        "tags": ["L1", "model:some-model", "Memory Bound"],
        "axes": {
            "Half": {"type": "expr", "expression": "Width // 2"},
            "N": {"type": "var"},
            "Width": {"type": "const", "value": 8},
        },
        "inputs": {
            "Data": {"shape": ["N", "Half", "3", 2], "dtype": "bfloat16"},
            "scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["N"], "dtype": "float16"}},
        "workloads": [{"axes": {"N": 4}, "baseline_latency_ms": 0.5, "sol_ms": 0.25}],
        "sol_is_dummy": False,
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def kernel(**changes: Any) -> Kernel:
    return read_kernel(definition(**changes), 7)


def spec(row: dict[str, Any]) -> dict[str, Any]:
    """The spec of a row's document, whose digest is checked against an RFC 8785 library on the way."""
    document = json.loads(row["document"])
    digest = "sha256:" + hashlib.sha256(rfc8785.dumps(document)).hexdigest()
    assert digest == (row["workload_digest"] if "workload_digest" in row else row["problem_digest"])
    assert row["document"] == rfc8785.dumps(document).decode()
    assert document["apiVersion"] == "kernelindex.dev/v1alpha1"
    result: dict[str, Any] = document["spec"]
    return result


def case(**changes: Any) -> dict[str, Any]:
    """Spec of the case of a kernel with one workload, changed as told."""
    workload = {"axes": {"N": 4}, **changes}
    return spec(kernel(workloads=[workload]).cases[1])


def reason(**changes: Any) -> str:
    with pytest.raises(Rejected) as caught:
        kernel(**changes)
    assert caught.value.detail
    return caught.value.reason


def test_an_operation_has_lowercase_axes_roles_and_arguments_in_upstream_order() -> None:
    assert spec(kernel().problem) == {
        "family": "memory-bound",
        "axes": {
            "half": {"role": "derived", "type": "integer", "expression": "width // 2"},
            "n": {"role": "variable", "type": "integer"},
            "width": {"role": "constant", "type": "integer", "value": 8},
        },
        "inputs": [
            {"name": "data", "tensor": {"shape": ["n", "half", 3, 2], "dtype": "bf16"}},
            {"name": "scale", "scalar": {"dtype": "fp32"}},
        ],
        "outputs": [{"name": "out", "tensor": {"shape": ["n"], "dtype": "fp16"}}],
        "semantics": {"mutation": "none", "determinism": "unspecified"},
    }


def test_a_problem_row_says_what_the_definition_says() -> None:
    row = kernel().problem
    assert (row["source"], row["problem"], row["slug"]) == ("sol-execbench", "007_scaled_copy", "007-scaled-copy")
    assert (row["title"], row["family"], row["scoring"]) == ("Scaled copy", "memory-bound", "suite")
    assert (row["curated"], row["ranking_by"], row["upstream_id"], row["deadline_at"]) == (True, None, "7", None)
    assert row["tags"] == ["L1", "model:some-model", "Memory Bound"]
    assert json.loads(row["axes"])["width"] == {"role": "constant", "type": "integer", "value": 8}
    assert [entry["name"] for entry in json.loads(row["inputs"])] == ["data", "scale"]
    assert json.loads(row["outputs"]) == [{"name": "out", "tensor": {"dtype": "fp16", "shape": ["n"]}}]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("001_attention_softmax", "Attention softmax"),
        ("gemm", "Gemm"),
        ("12_3d_conv", "3d conv"),
        ("001_", "001_"),
        ("42", "42"),
        ("ß_norm", "SS norm"),
    ],
)
def test_a_title_is_the_name_without_its_number(name: str, expected: str) -> None:
    assert title(name) == expected


def test_a_name_without_a_letter_or_digit_gives_a_slug_of_the_id() -> None:
    assert kernel(name="内核").problem["slug"] == "kernel-7"


@pytest.mark.parametrize(
    ("op_type", "tags", "expected"),
    [
        ("Fused MoE", ["attention"], "fused-moe"),
        (None, ["L1", "L2", "Quant", "FlashInfer-Bench", "model:x", "Rope_2D"], "rope-2d"),
        (None, ["L1", "model:x"], "uncategorized"),
        (None, None, "uncategorized"),
        ("", ["mlp"], "mlp"),
        ("???", ["mlp"], "mlp"),
    ],
)
def test_the_family_is_the_op_type_else_the_first_telling_tag(op_type: Any, tags: Any, expected: str) -> None:
    assert kernel(op_type=op_type, tags=tags).problem["family"] == expected


@pytest.mark.parametrize(
    ("upstream", "expected"),
    [
        ("bfloat16", "bf16"),
        ("float16", "fp16"),
        ("half", "fp16"),
        ("float32", "fp32"),
        ("float", "fp32"),
        ("float64", "fp64"),
        ("double", "fp64"),
        ("float8_e4m3fn", "fp8_e4m3"),
        ("float8_e4m3", "fp8_e4m3"),
        ("float8_e5m2", "fp8_e5m2"),
        ("float4_e2m1", "fp4_e2m1"),
        ("float4_e2m1fn_x2", "float4_e2m1fn_x2"),
        ("Int-64", "int_64"),
    ],
)
def test_dtypes_have_short_names(upstream: str, expected: str) -> None:
    made = kernel(inputs={"a": {"shape": None, "dtype": upstream}})
    assert spec(made.problem)["inputs"] == [{"name": "a", "scalar": {"dtype": expected}}]
    assert made.dtypes == [expected]


@pytest.mark.parametrize(
    ("upstream", "expected"),
    [("X", "x"), ("a-b.c", "a_b_c"), ("_hidden", "x__hidden"), ("2nd", "x_2nd"), ("é", "x__"), ("", "x_")],
)
def test_argument_names_are_plain_words_that_begin_with_a_letter(upstream: str, expected: str) -> None:
    made = kernel(inputs={upstream: {"shape": [], "dtype": "float"}})
    assert spec(made.problem)["inputs"][0]["name"] == expected


def test_an_empty_shape_is_a_scalar_like_a_null_one() -> None:
    made = kernel(inputs={"a": {"shape": [], "dtype": "float"}, "b": {"dtype": "int32"}})
    assert spec(made.problem)["inputs"] == [
        {"name": "a", "scalar": {"dtype": "fp32"}},
        {"name": "b", "scalar": {"dtype": "int32"}},
    ]
    assert made.dtypes == ["fp32", "int32"]


@pytest.mark.parametrize("reference", [None, "", "  \n", 5])
def test_only_a_reference_with_text_is_stated(reference: Any) -> None:
    assert "reference" not in spec(kernel(reference=reference).problem)
    assert spec(kernel(reference="def run(): ...").problem)["reference"] == {"language": "python"}


def test_the_suite_lists_the_cases_in_upstream_order() -> None:
    made = kernel(workloads=[{"axes": {"N": 9}, "uuid": "nine"}, {"axes": {"N": 1}, "uuid": "one"}])
    suite = made.cases[0]
    assert spec(suite) == {
        "operationSpecDigest": made.problem_digest,
        "cases": [{"externalId": "nine", "axes": {"n": 9}}, {"externalId": "one", "axes": {"n": 1}}],
        "correctness": {
            "comparator": "sol_execbench_eval",
            "description": "Correctness must pass on every case in the SOL evaluation stack.",
        },
        "aggregation": {"metric": "latency", "statistic": "mean"},
    }
    assert (suite["kind"], suite["occurrence"], suite["statistic"]) == ("suite", 0, "mean")
    assert (suite["external_id"], suite["axes"], suite["tensors"]) == (None, None, None)
    assert (suite["baseline_latency_ms"], suite["sol_bound_ms"]) == (None, None)
    assert json.loads(suite["suite_cases"])[1] == {"axes": {"n": 1}, "externalId": "one"}
    assert suite["correctness_key"] == "sha256:d2595bd58bcaafaece79e7574209fa6a4f982d5b33b629d08422fa31037c4c7a"
    assert made.suite_digest == suite["workload_digest"]


def test_a_case_keeps_its_own_bindings_and_binds_its_tensors() -> None:
    made = kernel()
    row = made.cases[1]
    assert spec(row) == {
        "operationSpecDigest": made.problem_digest,
        "axes": {"n": 4},
        "tensors": {"data": {"dtype": "bf16", "shape": [4, 4, 3, 2]}},
        "correctness": {"comparator": "sol_execbench_eval"},
    }
    assert (row["kind"], row["occurrence"], row["statistic"], row["suite_cases"]) == ("case", 0, None, None)
    assert (row["axes"], row["dtypes"]) == ('{"n":4}', ["bf16", "fp32"])
    assert (row["baseline_latency_ms"], row["sol_bound_ms"]) == (0.5, 0.25)
    assert row["correctness"] == '{"comparator":"sol_execbench_eval"}'


def test_derived_axes_are_bound_in_order_of_dependency_whatever_order_they_are_declared_in() -> None:
    axes = {
        "c": {"type": "expr", "expression": "(b + 1) % 7"},
        "b": {"type": "expr", "expression": "a * N - 2"},
        "a": {"type": "const", "value": 3},
        "N": {"type": "var"},
    }
    made = kernel(axes=axes, inputs={"x": {"shape": ["c", "b", "a"], "dtype": "int8"}})
    assert spec(made.cases[1])["tensors"]["x"]["shape"] == [4, 10, 3]


def test_a_case_may_bind_a_derived_axis_itself() -> None:
    assert case(axes={"N": 4, "HALF": 6})["tensors"]["data"]["shape"] == [4, 6, 3, 2]


def test_a_shape_may_name_an_axis_that_is_no_word_of_an_expression() -> None:
    axes = {"9-Z": {"type": "var"}}
    made = kernel(axes=axes, inputs={"x": {"shape": ["9-Z"], "dtype": "int8"}}, workloads=[{"axes": {"9-z": 6}}])
    assert spec(made.problem)["inputs"][0]["tensor"]["shape"] == ["9-z"]
    assert spec(made.cases[1])["tensors"]["x"]["shape"] == [6]


def test_shapes_may_hold_expressions() -> None:
    made = kernel(inputs={"x": {"shape": ["2 * N + Half", "007"], "dtype": "int8"}})
    assert spec(made.problem)["inputs"][0]["tensor"]["shape"] == ["2 * n + half", 7]
    assert spec(made.cases[1])["tensors"]["x"]["shape"] == [12, 7]


def test_a_whole_number_with_a_decimal_point_is_an_integer() -> None:
    assert case(axes={"N": 4.0}) == case(axes={"N": 4})


def test_a_case_without_a_uuid_is_known_by_its_axes_under_upstream_names_in_collated_order() -> None:
    axes = {"b": 1, "B2": 2, "a_x": 3, "a1": 4, "ab": 5, "a-z": 6}
    made = kernel(axes={name: {"type": "var"} for name in axes}, inputs={}, workloads=[{"axes": axes}])
    text = '{"a_x":3,"a-z":6,"a1":4,"ab":5,"b":1,"B2":2}'
    assert made.cases[1]["external_id"] == hashlib.sha256(text.encode()).hexdigest()[:12]


def test_an_empty_uuid_is_none() -> None:
    made = kernel(workloads=[{"axes": {"N": 4}, "uuid": ""}])
    assert made.cases[1]["external_id"] == hashlib.sha256(b'{"N":4}').hexdigest()[:12]


def test_a_scalar_descriptor_with_a_value_is_a_scalar_whatever_the_shape() -> None:
    given = case(inputs={"Data": {"type": "scalar", "value": 1}, "scale": {"type": "scalar", "value": 1e-7}})
    assert given["tensors"] == {}
    assert given["scalars"] == {"data": {"dtype": "bf16", "value": 1}, "scale": {"dtype": "fp32", "value": 1e-7}}


@pytest.mark.parametrize(
    ("descriptor", "generator"),
    [
        ({"type": "random"}, "random"),
        ({"type": "safetensors", "path": "a", "tensor_key": "b"}, "safetensors"),
        ({"type": "ones"}, "random"),
        ({"type": "scalar", "value": "text"}, "random"),
        ({"type": "scalar", "value": True}, "random"),
        ({}, "random"),
    ],
)
def test_other_descriptors_say_how_a_tensor_is_made(descriptor: Any, generator: str) -> None:
    given = case(inputs={"Data": descriptor, "scale": {"type": "random"}})
    assert given["tensors"] == {
        "data": {"dtype": "bf16", "shape": [4, 4, 3, 2], "data": {"generator": generator}},
    }
    assert "scalars" not in given


def test_descriptors_go_by_upstream_names_and_a_null_one_says_nothing() -> None:
    assert case(inputs={"data": {"type": "random"}, "Data": None}) == case()
    assert case(inputs=None) == case()


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [
        ({"max_atol": 0.01, "max_rtol": 1e-5}, {"maxAbsoluteError": 0.01, "maxRelativeError": 1e-5}),
        ({"max_atol": 0}, {"maxAbsoluteError": 0}),
        ({"max_rtol": 1, "max_atol": None}, {"maxRelativeError": 1}),
        ({}, {}),
        (None, {}),
    ],
)
def test_tolerances_are_stated_only_where_given(tolerance: Any, expected: dict[str, float]) -> None:
    made = kernel(workloads=[{"axes": {"N": 4}, "tolerance": tolerance}])
    correctness: dict[str, Any] = {"comparator": "sol_execbench_eval", **expected}
    assert spec(made.cases[1])["correctness"] == correctness
    key = "sha256:" + hashlib.sha256(rfc8785.dumps({"correctness": correctness})).hexdigest()
    assert made.cases[1]["correctness_key"] == key


def test_one_case_listed_again_is_another_occurrence() -> None:
    workloads = [
        {"axes": {"N": 4}, "baseline_latency_ms": 1.0},
        {"axes": {"N": 5}},
        {"axes": {"N": 4}, "baseline_latency_ms": 2.0},
        {"axes": {"N": 4}, "baseline_latency_ms": 3.0},
    ]
    cases = kernel(workloads=workloads).cases[1:]
    assert [row["occurrence"] for row in cases] == [0, 0, 1, 2]
    assert [row["baseline_latency_ms"] for row in cases] == [1.0, None, 2.0, 3.0]
    assert len({row["workload_digest"] for row in cases}) == 2


@pytest.mark.parametrize(
    ("bounds", "dummy", "expected"),
    [
        ([0.5, 0.25], False, 0.25),
        ([0.5, 0.25], None, 0.25),
        ([0.5, 0.25], True, None),
        ([0.5, None], False, None),
        ([0.5, 0], False, None),
        ([0.5, -1.0], False, None),
        ([0.5, float("nan")], False, None),
        ([0.5, float("inf")], False, None),
        ([0.5, 10**400], False, None),
        ([0.5, "0.2"], False, None),
        ([2, 3], False, 2.0),
        ([], False, None),
    ],
)
def test_the_bound_is_the_smallest_unless_one_is_missing_or_a_dummy(bounds: Any, dummy: Any, expected: Any) -> None:
    workloads = [{"axes": {"N": 4}, "sol_ms": bound} for bound in bounds]
    assert kernel(workloads=workloads, sol_is_dummy=dummy).sol_bound_ms == expected


def test_names_that_come_out_alike_reject_the_kernel() -> None:
    assert reason(axes={"N": {"type": "var"}, "n": {"type": "var"}}) == "NAME_COLLISION"
    two = {"a-b": {"dtype": "float"}, "a_b": {"dtype": "float"}}
    assert reason(inputs=two) == "NAME_COLLISION"
    assert reason(outputs=two) == "NAME_COLLISION"
    assert reason(outputs={"DATA": {"dtype": "float"}}) == "NAME_COLLISION"
    assert reason(workloads=[{"axes": {"N": 4, "n": 5}}]) == "NAME_COLLISION"


def test_an_argument_that_is_changed_in_place_may_be_input_and_output() -> None:
    made = kernel(outputs={"Data": {"shape": ["N"], "dtype": "bfloat16"}})
    assert spec(made.problem)["outputs"][0]["name"] == "data"


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {"N": {"type": "const", "value": 2**53}}},
        {"axes": {"N": {"type": "const", "value": float("nan")}}},
        {"axes": {"N": {"type": "const", "value": 1e300}}},
        {"inputs": {"x": {"shape": [2**53], "dtype": "float"}}},
        {"inputs": {"x": {"shape": [float("inf")], "dtype": "float"}}},
        {"inputs": {"x": {"shape": ["9" * 5000], "dtype": "float"}}},
        {"inputs": {"x": {"shape": ["9007199254740992"], "dtype": "float"}}},
        {"inputs": {"x": {"shape": ["N * 9007199254740991"], "dtype": "float"}}},
        {"workloads": [{"axes": {"N": -(2**53)}}]},
        {"workloads": [{"axes": {"N": 4}, "tolerance": {"max_atol": float("inf")}}]},
        {"workloads": [{"axes": {"N": 4}, "tolerance": {"max_rtol": 10**30}}]},
        {"workloads": [{"axes": {"N": 4}, "inputs": {"scale": {"type": "scalar", "value": float("nan")}}}]},
    ],
)
def test_a_number_without_a_canonical_form_rejects_the_kernel(changes: dict[str, Any]) -> None:
    assert reason(**changes) == "NUMBER_OUT_OF_RANGE"


@pytest.mark.parametrize(
    "expression",
    ["__import__('os')", "N ** 2", "N / 2", "N.real", "", "N // 0", "N +", "f(N)", "1 if N else 2", "(" * 300],
)
def test_an_expression_of_another_form_rejects_the_kernel(expression: str) -> None:
    axes = {"N": {"type": "var"}, "Half": {"type": "expr", "expression": expression}}
    assert reason(axes=axes) == "BAD_EXPRESSION"
    assert reason(inputs={"x": {"shape": [expression], "dtype": "float"}}) == "BAD_EXPRESSION"


def test_an_expression_is_refused_for_its_form_even_where_every_case_binds_the_axis() -> None:
    axes = {"N": {"type": "var"}, "Half": {"type": "expr", "expression": "N ** 2"}}
    assert reason(axes=axes, workloads=[{"axes": {"N": 4, "Half": 2}}]) == "BAD_EXPRESSION"
    divides = {"N": {"type": "var"}, "Half": {"type": "expr", "expression": "8 // (N - 1)"}}
    assert spec(kernel(axes=divides).cases[1])["tensors"]["data"]["shape"] == [4, 2, 3, 2]


def test_an_axis_that_nothing_binds_rejects_the_kernel() -> None:
    assert reason(workloads=[{"axes": {}}]) == "UNBOUND_AXIS"
    assert reason(inputs={"x": {"shape": ["missing"], "dtype": "float"}}) == "UNBOUND_AXIS"
    cycle = {"N": {"type": "expr", "expression": "M"}, "M": {"type": "expr", "expression": "N"}}
    shaped = {"x": {"shape": ["M"], "dtype": "float"}}
    assert reason(axes=cycle, inputs=shaped, workloads=[{"axes": {}}]) == "UNBOUND_AXIS"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": None},
        {"name": 5},
        {"name": " "},
        {"axes": None},
        {"axes": []},
        {"axes": {"N": None}},
        {"axes": {"N": {"type": "range"}}},
        {"axes": {"N": {"type": ["var"]}}},
        {"axes": {"N": {"type": "const"}}},
        {"axes": {"N": {"type": "const", "value": True}}},
        {"axes": {"N": {"type": "const", "value": "8"}}},
        {"axes": {"N": {"type": "const", "value": 1.5}}},
        {"axes": {"N": {"type": "expr", "expression": 5}}},
        {"inputs": None},
        {"inputs": [{"name": "x", "dtype": "float"}]},
        {"inputs": {"x": "float"}},
        {"inputs": {"x": {"shape": None}}},
        {"inputs": {"x": {"shape": None, "dtype": 5}}},
        {"inputs": {"x": {"shape": "N", "dtype": "float"}}},
        {"inputs": {"x": {"shape": [None], "dtype": "float"}}},
        {"inputs": {"x": {"shape": [False], "dtype": "float"}}},
        {"inputs": {"x": {"shape": [["N"]], "dtype": "float"}}},
        {"outputs": None},
        {"tags": "L1"},
        {"tags": [1]},
        {"op_type": 5},
        {"workloads": None},
        {"workloads": {}},
        {"workloads": [5]},
        {"workloads": [{}]},
        {"workloads": [{"axes": [4]}]},
        {"workloads": [{"axes": {"N": "4"}}]},
        {"workloads": [{"axes": {"N": None}}]},
        {"workloads": [{"axes": {"N": 4}, "uuid": 5}]},
        {"workloads": [{"axes": {"N": 4}, "inputs": []}]},
        {"workloads": [{"axes": {"N": 4}, "inputs": {"Data": "random"}}]},
        {"workloads": [{"axes": {"N": 4}, "tolerance": 0.1}]},
        {"workloads": [{"axes": {"N": 4}, "tolerance": {"max_atol": "0.1"}}]},
    ],
)
def test_a_malformed_definition_is_rejected(changes: dict[str, Any]) -> None:
    assert reason(**changes) == "BAD_DEFINITION"


def test_text_without_a_form_in_utf_8_rejects_the_kernel() -> None:
    assert reason(axes={"half \ud800": {"type": "var"}}, inputs={}) == "BAD_TEXT"


def test_hostile_names_come_through() -> None:
    name = "1_\x00\"';--../\u202e\x1b[31m=cmd()" + "x" * 100_000
    row = kernel(name=name).problem
    assert row["problem"] == name
    assert row["slug"].startswith("1-31m-cmd-x")
    assert len(row["slug"]) == 100


def test_reading_leaves_the_definition_as_it_was() -> None:
    given = definition()
    before = deepcopy(given)
    read_kernel(given, 7)
    assert given == before


NAMES = st.sampled_from(["n", "N", "m", "hidden_size", "Hidden", "k2", "a_b", "_x", "9z", "é"])
WHOLE = st.integers(-3, 5000) | st.sampled_from([2**53, 4.0, True, None, "4"])
EXPRESSIONS = st.sampled_from(["n * 2", "N // 2", "m % 3 + k2", "hidden_size", "(n", "7", "", "missing - 1"])
AXES = st.dictionaries(
    NAMES,
    st.just({"type": "var"})
    | st.builds(lambda value: {"type": "const", "value": value}, WHOLE)
    | st.builds(lambda text: {"type": "expr", "expression": text}, EXPRESSIONS),
    max_size=4,
)
SHAPES = st.none() | st.lists(NAMES | st.integers(0, 9) | st.sampled_from(["12", "007"]), max_size=3)
DTYPES = st.sampled_from(["float32", "half", "int8", "Float8-X"])
ARGUMENTS = st.dictionaries(NAMES, st.fixed_dictionaries({"dtype": DTYPES, "shape": SHAPES}), max_size=3)
DESCRIPTORS = st.fixed_dictionaries(
    {"type": st.sampled_from(["scalar", "random", "safetensors"]), "value": st.none() | st.floats() | st.integers()}
)
TOLERANCES = st.none() | st.dictionaries(st.sampled_from(["max_atol", "max_rtol"]), st.none() | st.floats(), max_size=2)
WORKLOADS = st.lists(
    st.fixed_dictionaries(
        {"axes": st.dictionaries(NAMES, st.integers(1, 9), max_size=4)},
        optional={
            "uuid": st.sampled_from(["", "case-1", None]),
            "inputs": st.dictionaries(NAMES, DESCRIPTORS, max_size=2),
            "tolerance": TOLERANCES,
            "sol_ms": st.none() | st.floats(-1, 9),
        },
    ),
    max_size=3,
)


@settings(deadline=None, max_examples=200)
@given(axes=AXES, inputs=ARGUMENTS, outputs=ARGUMENTS, workloads=WORKLOADS, dummy=st.sampled_from([None, False, True]))
def test_any_definition_gives_what_the_plain_rules_give(
    axes: Any, inputs: Any, outputs: Any, workloads: Any, dummy: Any
) -> None:
    assume(not {name.lower() for name in inputs} & {name.lower() for name in outputs})
    whole = {**definition(), "axes": axes, "inputs": inputs, "outputs": outputs, "workloads": workloads}
    whole["sol_is_dummy"] = dummy
    try:
        operation, suite = oracle_sol.operation(whole), oracle_sol.workload_suite(whole)
        cases = [oracle_sol.workload_case(whole, workload) for workload in workloads]
    except oracle.Rejected:
        # Of several faults either side may name another first.
        with pytest.raises(Rejected):
            read_kernel(whole, 7)
        return
    made = read_kernel(whole, 7)
    assert made.problem_digest == oracle.document_digest(operation)
    assert made.suite_digest == oracle.document_digest(suite)
    assert made.dtypes == oracle.input_dtypes(operation["spec"]["inputs"])
    assert made.sol_bound_ms == oracle_sol.sol_bound_ms(whole)
    assert [row["document"] for row in made.cases] == [oracle.canonical(document) for document in [suite, *cases]]
    assert [row["workload_digest"] for row in made.cases[1:]] == [oracle.document_digest(case) for case in cases]
