"""Columns as upstream types them, made into the one type that the tables want.

Each function takes an Arrow array of any type and gives an array of the wanted type, null where nothing usable stands,
with a mask of the entries that say something unusable. Nothing here raises for what a file contains.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

INSTANT = pa.timestamp("us", tz="UTC")
# Years 1 to 9999, in microseconds: what an instant can be written in.
_FIRST_INSTANT, _LAST_INSTANT = -62_135_596_800_000_000, 253_402_300_799_999_999
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EXACT_INTEGER = 2**53


class Column(NamedTuple):
    """A converted column and the mask of its entries that could not be converted (no nulls)."""

    values: pa.Array
    unusable: pa.Array


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without dictionary encoding, with 32-bit text offsets."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if (
        pa.types.is_large_binary(array.type)
        or pa.types.is_fixed_size_binary(array.type)
        or pa.types.is_binary_view(array.type)
    ):
        array = array.cast(pa.binary())
    return array


def text(array: pa.Array | pa.ChunkedArray) -> Column:
    """Text; numbers and booleans are written out, bytes are read as UTF-8, anything else is unusable."""
    array = plain(array)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _valid_text(array)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _each(array, _written, pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _usable(array.cast(pa.string()))
    return _nothing(array, pa.string())


def name(array: pa.Array | pa.ChunkedArray) -> Column:
    """Text that names something: empty text names nothing, nor does the NaN that some writers have for null."""
    array = plain(array)
    values, unusable = text(array)
    nothing = pa.array(["", "nan"] if pa.types.is_floating(array.type) else [""])
    return Column(pc.if_else(pc.is_in(values, nothing), pa.scalar(None, pa.string()), values), unusable)


def integer(array: pa.Array | pa.ChunkedArray) -> Column:
    """64-bit integers, from integers, whole floats that are exact, and text of digits."""
    array = plain(array)
    kind = array.type
    if pa.types.is_signed_integer(kind):
        return _usable(array.cast(pa.int64()))
    if pa.types.is_boolean(kind):
        return _nothing(array, pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _each(array, _whole, pa.int64())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _chain(_valid_text(array), lambda values: _each(values, _digits, pa.int64()))
    return _nothing(array, pa.int64())


def number(array: pa.Array | pa.ChunkedArray) -> Column:
    """Doubles, NaN and infinities among them, from numbers and text of numbers."""
    array = plain(array)
    kind = array.type
    if pa.types.is_boolean(kind):
        return _nothing(array, pa.float64())
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _usable(array.cast(pa.float64(), safe=False))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _chain(_valid_text(array), lambda values: _each(values, float_of_text, pa.float64()))
    return _nothing(array, pa.float64())


def truth(array: pa.Array | pa.ChunkedArray) -> Column:
    """Booleans, also from 0 and 1 and from the words for them."""
    array = plain(array)
    if pa.types.is_boolean(array.type):
        return _usable(array)
    words = {"true": True, "t": True, "1": True, "1.0": True, "false": False, "f": False, "0": False, "0.0": False}
    written = text(array)
    return _chain(written, lambda values: _each(values, lambda word: words.get(word.strip().lower()), pa.bool_()))


def instant(array: pa.Array | pa.ChunkedArray) -> Column:
    """Instants in UTC, cut to microseconds; without a zone they are UTC. Years 1 to 9999 alone can be written."""
    array = plain(array)
    kind = array.type
    if pa.types.is_timestamp(kind):
        return _instants(array.cast(pa.int64()), kind.unit)
    if pa.types.is_date(kind):
        milliseconds = array.cast(pa.date64()).cast(pa.int64())
        return _instants(milliseconds, "ms")
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _chain(_valid_text(array), lambda values: _each(values, instant_of_text, INSTANT))
    return _nothing(array, INSTANT)


def float_of_text(value: str) -> float | None:
    """A decimal number, NaN or infinity; None for any other text."""
    if re.fullmatch(
        r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\s*[-+]?(nan|inf|infinity)\s*", value, re.IGNORECASE | re.ASCII
    ):
        return float(value)
    return None


def instant_of_text(value: str) -> datetime | None:
    """An ISO 8601 time, UTC where it names no zone; None for any other text."""
    try:
        parsed = datetime.fromisoformat(value.strip())
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _instants(ticks: pa.Array, unit: str) -> Column:
    if unit == "ns":
        # Integer division cuts towards zero; before 1970 that would be forwards.
        quotient = pc.divide(ticks, 1000)
        behind = pc.less(ticks, pc.multiply(quotient, 1000))
        microseconds = pc.subtract(quotient, behind.cast(pa.int64()))
    else:
        factor = _MICROSECONDS[unit]
        inside = pc.and_(
            pc.greater_equal(ticks, math.ceil(_FIRST_INSTANT / factor)),
            pc.less_equal(ticks, _LAST_INSTANT // factor),
        )
        microseconds = pc.multiply(pc.if_else(inside, ticks, None), factor)
    inside = pc.and_(pc.greater_equal(microseconds, _FIRST_INSTANT), pc.less_equal(microseconds, _LAST_INSTANT))
    values = pc.if_else(inside, microseconds, None).cast(INSTANT)
    return Column(values, pc.and_(pc.is_null(values), pc.is_valid(ticks)))


def _valid_text(array: pa.Array) -> Column:
    """Text whose bytes are UTF-8: checked in one pass, entry by entry only where that fails."""
    try:
        checked = array.cast(pa.string())
        checked.validate(full=True)
        return _usable(checked)
    except pa.ArrowInvalid:
        return _each(array.cast(pa.binary()), _decode, pa.string())


def _decode(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _written(value: float | Decimal) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def _whole(value: Any) -> int | None:
    whole = math.isfinite(value) and value == int(value)
    # A double beyond 2^53 no longer says which integer was meant.
    exact = whole and (not isinstance(value, float) or abs(value) <= _EXACT_INTEGER)
    return int(value) if exact and -(2**63) <= int(value) < 2**63 else None


def _digits(value: str) -> int | None:
    if not re.fullmatch(r"\s*[-+]?\d{1,19}\s*", value, re.ASCII):
        return None
    return int(value) if -(2**63) <= int(value) < 2**63 else None


def _each(array: pa.Array, convert: Callable[[Any], Any], kind: pa.DataType) -> Column:
    """Entry by entry, each distinct value once; for the forms that upstream seldom has."""
    encoded = array.dictionary_encode()
    values = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], kind)
    taken = values.take(encoded.indices)
    return Column(taken, pc.and_(pc.is_null(taken), pc.is_valid(array)))


def _usable(array: pa.Array) -> Column:
    return Column(array, pa.repeat(False, len(array)))


def _nothing(array: pa.Array, kind: pa.DataType) -> Column:
    return Column(pa.nulls(len(array), kind), pc.is_valid(array))


def _chain(first: Column, convert: Callable[[pa.Array], Column]) -> Column:
    second = convert(first.values)
    return Column(second.values, pc.or_(first.unusable, second.unusable))
