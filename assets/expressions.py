"""Axis expressions: integers, axis names, `+ - * % //` and parentheses. Upstream's text is parsed, never executed."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from warehouse.identity import MAXIMUM_INTEGER

# Longer than any real expression; keeps the parser's work bounded.
_LONGEST = 1000

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}


class ExpressionError(ValueError):
    """An axis or a shape that cannot be bound: `code` is a reject reason, `detail` says what is wrong."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def check_integer(value: int, what: str) -> int:
    """The value, if it has a canonical form.

    Raises:
        ExpressionError: `NUMBER_OUT_OF_RANGE` beyond ±(2^53 − 1).
    """
    if abs(value) > MAXIMUM_INTEGER:
        raise ExpressionError("NUMBER_OUT_OF_RANGE", f"{what} is beyond 2^53 - 1")
    return value


@lru_cache(maxsize=4096)
def names_in(expression: str) -> frozenset[str]:
    """The axis names that an expression mentions, lowercased."""
    return frozenset(node.id.lower() for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name))


def evaluate(expression: str, bound: Mapping[str, int]) -> int:
    """Value of an expression over bound axes, whose names are lowercase.

    Raises:
        ExpressionError: `BAD_EXPRESSION`, `UNBOUND_AXIS` or `NUMBER_OUT_OF_RANGE`.
    """
    try:
        value = _value(_parse(expression).body, bound, expression)
    except RecursionError as error:
        raise ExpressionError("BAD_EXPRESSION", f"{expression[:60]!r} is nested too deeply") from error
    return check_integer(value, f"the value of {expression[:60]!r}")


def bind_axes(axes: Mapping[str, Mapping[str, Any]], bindings: Mapping[str, int]) -> dict[str, int]:
    """All axes of a problem bound for one case: its own bindings, the constants, then the derived axes.

    Derived axes are taken in order of dependency, in whatever order they are declared. What the case binds
    itself wins over what the problem declares. A derived axis that needs one that nothing binds stays unbound.

    Args:
        axes: lowercase name to `{role, value | expression}`.
        bindings: lowercase name to integer.

    Raises:
        ExpressionError: `BAD_EXPRESSION` or `NUMBER_OUT_OF_RANGE`.
    """
    bound = {name: check_integer(value, f"axis {name!r}") for name, value in bindings.items()}
    for name, axis in axes.items():
        if axis["role"] == "constant" and name not in bound:
            bound[name] = check_integer(axis["value"], f"axis {name!r}")
    waiting = {
        name: axis["expression"] for name, axis in axes.items() if axis["role"] == "derived" and name not in bound
    }
    while waiting:
        ready = [name for name, expression in waiting.items() if names_in(expression) <= bound.keys()]
        if not ready:
            # Axes that nothing binds matter only to a shape that uses them.
            break
        for name in ready:
            bound[name] = evaluate(waiting.pop(name), bound)
    return bound


def bind_shape(shape: list[int | str], bound: Mapping[str, int]) -> list[int]:
    """A shape with every axis name or expression replaced by its value.

    Raises:
        ExpressionError: `BAD_EXPRESSION`, `UNBOUND_AXIS` or `NUMBER_OUT_OF_RANGE`.
    """
    return [
        check_integer(entry, "a shape's entry") if isinstance(entry, int) else evaluate(entry, bound) for entry in shape
    ]


@lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.Expression:
    # The characters are checked first: of them Python's parser makes little but these operators.
    # Python's own forms of integers (`0x10`, `1_000`) are none of ours.
    if (
        len(expression) > _LONGEST
        or not re.fullmatch(r"[A-Za-z0-9_ +\-*/%()]+", expression)
        or re.search(r"\b[0-9]+[A-Za-z_]", expression)
    ):
        raise ExpressionError(
            "BAD_EXPRESSION", f"{expression[:60]!r} is no expression of integers, axes and + - * % //"
        )
    try:
        return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError("BAD_EXPRESSION", f"{expression[:60]!r} cannot be read: {error}") from error


def _value(node: ast.expr, bound: Mapping[str, int], expression: str) -> int:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name.lower() not in bound:
                raise ExpressionError("UNBOUND_AXIS", f"nothing binds {name!r} in {expression!r}")
            return bound[name.lower()]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, bound, expression)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            try:
                return _OPERATORS[type(op)](_value(left, bound, expression), _value(right, bound, expression))
            except ZeroDivisionError as error:
                raise ExpressionError("BAD_EXPRESSION", f"{expression!r} divides by zero") from error
    raise ExpressionError("BAD_EXPRESSION", f"{expression!r} has a part that is no integer, axis or + - * % //")
