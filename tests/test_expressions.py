"""Axes and shapes are bound for a case, whatever order they are declared in and whatever upstream writes."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.expressions import ExpressionError, bind_axes, bind_shape, check_integer, evaluate, names_in

MAXIMUM = 2**53 - 1
VARIABLE = {"role": "variable"}


def constant(value: int) -> dict[str, Any]:
    return {"role": "constant", "value": value}


def derived(expression: str) -> dict[str, Any]:
    return {"role": "derived", "expression": expression}


def code_of(call: Callable[[], Any]) -> str:
    """Code of the expression error that a call raises."""
    with pytest.raises(ExpressionError) as raised:
        call()
    assert raised.value.detail == str(raised.value) != ""
    return raised.value.code


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7", 7),
        ("a", 7),
        (" A ", 7),
        ("a + b * 2", 1),
        ("(a + b) * 2", 8),
        ("a - b - 1", 9),
        ("a // 2", 3),
        ("b // 2", -2),
        ("a % 4", 3),
        ("b % 4", 1),
        ("-a", -7),
        ("a--b", 4),
        ("((a + 255) // 256) * 256", 256),
        ("a//(2//(1//1))", 3),
        ("9007199254740991 - 0", MAXIMUM),
        ("99999999999999999999 % 10", 9),
    ],
)
def test_an_expression_has_the_value_that_integers_give_it(expression: str, value: int) -> None:
    assert evaluate(expression, {"a": 7, "b": -3}) == value


@settings(deadline=None, max_examples=200)
@given(
    st.recursive(
        st.one_of(st.integers(0, 999).map(str), st.sampled_from(["a", "b"])),
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner),
            st.builds("-{}".format, inner),
        ),
        max_leaves=8,
    ),
    st.integers(-50, 50),
    st.integers(-50, 50),
)
def test_an_expression_means_what_it_means_to_python(expression: str, a: int, b: int) -> None:
    try:
        # The strategy makes nothing but integers, two names and operators.
        wanted = eval(expression, {"__builtins__": {}}, {"a": a, "b": b})  # noqa: S307
    except ZeroDivisionError:
        assert code_of(lambda: evaluate(expression, {"a": a, "b": b})) == "BAD_EXPRESSION"
        return
    if abs(wanted) > MAXIMUM:
        assert code_of(lambda: evaluate(expression, {"a": a, "b": b})) == "NUMBER_OUT_OF_RANGE"
    else:
        assert evaluate(expression, {"a": a, "b": b}) == wanted


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "a b",
        "(a",
        "a)",
        "a +",
        "a / 2",
        "a ** 2",
        "2 ** 999999999",
        "a // 0",
        "a % (a - 7)",
        "+a",
        "1.5",
        "1e3",
        "1_000",
        "0x10",
        "0b1",
        "007",
        "True",
        "None",
        "not a",
        "a and a",
        "a if a else a",
        "a if 1else 2",
        "lambda",
        "a(a)",
        "()",
        "a.real",
        "a[0]",
        "__import__('os').system('true')",
        "(a := 1)",
        "a, a",
        "a\n",
        "a;a",
        "٣",
        "ａ",
        "a < 2",
        "~a",
        "a << 60",
        "(" * 400 + "a" + ")" * 400,
        "a" * 1001,
    ],
)
def test_what_is_no_such_expression_is_refused(expression: str) -> None:
    assert code_of(lambda: evaluate(expression, {"a": 7, "none": 1, "real": 1})) == "BAD_EXPRESSION"


def test_values_that_have_no_canonical_form_are_refused() -> None:
    assert code_of(lambda: evaluate("a * a", {"a": 2**27})) == "NUMBER_OUT_OF_RANGE"
    assert code_of(lambda: evaluate("-a * a", {"a": 2**27})) == "NUMBER_OUT_OF_RANGE"
    assert code_of(lambda: evaluate("9" * 1000, {})) == "NUMBER_OUT_OF_RANGE"
    assert code_of(lambda: evaluate("*".join(["a"] * 500), {"a": MAXIMUM})) == "NUMBER_OUT_OF_RANGE"
    assert check_integer(-MAXIMUM, "axis") == -MAXIMUM
    assert code_of(lambda: check_integer(MAXIMUM + 1, "axis 'm'")) == "NUMBER_OUT_OF_RANGE"


def test_an_expression_nested_deeper_than_the_stack_is_refused() -> None:
    def deep(levels: int) -> int:
        return evaluate("-" * 900 + "a", {"a": 1}) if levels == 0 else deep(levels - 1)

    assert code_of(lambda: deep(sys.getrecursionlimit() // 3)) == "BAD_EXPRESSION"


def test_a_name_that_nothing_binds_is_named() -> None:
    with pytest.raises(ExpressionError, match="nothing binds 'size' in 'size // 2'") as raised:
        evaluate("size // 2", {"a": 7})
    assert raised.value.code == "UNBOUND_AXIS"


def test_names_of_an_expression_are_lowercase() -> None:
    assert names_in("(M + n_blocks) // 128 - m") == {"m", "n_blocks"}
    assert names_in("7") == set()
    assert code_of(lambda: names_in("m /")) == "BAD_EXPRESSION"


CHAIN = {
    "m": VARIABLE,
    "block": constant(128),
    "rows": derived("m * 2"),
    "blocks": derived("(rows + block - 1) // block"),
    "padded": derived("Blocks * BLOCK"),
    "total": derived("padded + rows + m"),
    "half": derived("total // 2"),
}


@settings(deadline=None, max_examples=100)
@given(st.permutations(list(CHAIN)), st.integers(0, 10**6))
def test_derived_axes_bind_in_any_order_of_declaration(order: list[str], m: int) -> None:
    rows = m * 2
    blocks = (rows + 127) // 128
    total = blocks * 128 + rows + m
    wanted = {
        "m": m,
        "block": 128,
        "rows": rows,
        "blocks": blocks,
        "padded": blocks * 128,
        "total": total,
        "half": total // 2,
    }
    assert bind_axes({name: CHAIN[name] for name in order}, {"m": m}) == wanted


def test_what_a_case_binds_wins_over_what_the_problem_declares() -> None:
    bound = bind_axes({"m": constant(1), "n": derived("m * 2"), "k": derived("n + 1")}, {"m": 5, "n": 3, "extra": 9})
    assert bound == {"m": 5, "n": 3, "k": 4, "extra": 9}


def test_axes_in_a_circle_and_axes_of_unknown_ones_stay_unbound() -> None:
    axes = {
        "one": derived("two"),
        "two": derived("one"),
        "own": derived("own + 1"),
        "lost": derived("missing"),
        "m": VARIABLE,
    }
    assert bind_axes(axes, {"m": 4}) == {"m": 4}
    assert code_of(lambda: bind_shape(["m", "one"], bind_axes(axes, {"m": 4}))) == "UNBOUND_AXIS"
    assert bind_shape(["m"], bind_axes(axes, {"m": 4})) == [4]


@pytest.mark.parametrize(
    ("axes", "bindings", "code"),
    [
        ({"m": VARIABLE}, {"m": MAXIMUM + 1}, "NUMBER_OUT_OF_RANGE"),
        ({"m": constant(-MAXIMUM - 1)}, {}, "NUMBER_OUT_OF_RANGE"),
        ({"m": VARIABLE, "n": derived("m * m")}, {"m": 2**30}, "NUMBER_OUT_OF_RANGE"),
        ({"m": VARIABLE, "n": derived("m // (m - 4)")}, {"m": 4}, "BAD_EXPRESSION"),
        ({"n": derived("2 ** 3")}, {}, "BAD_EXPRESSION"),
        ({"n": derived("m.real")}, {"m": 1}, "BAD_EXPRESSION"),
    ],
)
def test_an_axis_that_cannot_be_computed_refuses_the_case(
    axes: dict[str, Any], bindings: dict[str, int], code: str
) -> None:
    assert code_of(lambda: bind_axes(axes, bindings)) == code


def test_a_shape_has_integers_names_and_expressions() -> None:
    assert bind_shape([], {}) == []
    assert bind_shape([1, "M", "m // 2", "(m+1)*3"], {"m": 8}) == [1, 8, 4, 27]
    assert code_of(lambda: bind_shape([MAXIMUM + 1], {})) == "NUMBER_OUT_OF_RANGE"
    assert code_of(lambda: bind_shape(["m", "n"], {"m": 1})) == "UNBOUND_AXIS"


def test_a_long_chain_of_axes_is_bound() -> None:
    axes = {f"a{i}": derived(f"a{i - 1} + 1") for i in range(1, 300)}
    names = list(axes)
    random.Random(7).shuffle(names)
    assert bind_axes({name: axes[name] for name in names}, {"a0": 0})["a299"] == 299
