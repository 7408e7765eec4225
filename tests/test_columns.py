"""Columns of whatever type upstream chose come out as the one type that the tables want."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets import columns

Wanted = list[Any]

UNUSABLE = object()


def check(column: columns.Column, kind: pa.DataType, wanted: Wanted) -> None:
    """The values, and a mask of exactly the entries that are unusable."""
    assert column.values.type == kind
    assert column.values.to_pylist() == [None if value is UNUSABLE else value for value in wanted]
    assert column.unusable.to_pylist() == [value is UNUSABLE for value in wanted]


def text_of_bytes(*values: bytes | None) -> pa.Array:
    """A text array whose bytes nobody has checked."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


INVALID = text_of_bytes(b"ok", None, b"\xff", b"\xed\xa0\x80", b"")

NOTHING = [
    pa.nulls(2),
    pa.array([None, None], pa.float64()),
    pa.array([None, None], pa.string()).dictionary_encode(),
    pa.array([None, None], pa.list_(pa.string())),
    pa.array([None, None], pa.struct([("a", pa.int64())])),
    pa.array([None, None], pa.timestamp("ns")),
]
NESTED = [
    pa.array([[1], None]),
    pa.array([{"a": 1}, None]),
    pa.array([1, None], pa.duration("s")),
    pa.array([1, None], pa.time32("s")),
]
CONVERSIONS = [
    (columns.text, pa.string()),
    (columns.name, pa.string()),
    (columns.integer, pa.int64()),
    (columns.number, pa.float64()),
    (columns.truth, pa.bool_()),
    (columns.instant, columns.INSTANT),
]


@pytest.mark.parametrize(("convert", "kind"), CONVERSIONS)
@pytest.mark.parametrize("array", NOTHING, ids=lambda array: str(array.type))
def test_nulls_of_any_type_are_nulls(convert: Any, kind: pa.DataType, array: pa.Array) -> None:
    check(convert(array), kind, [None, None])


@pytest.mark.parametrize(("convert", "kind"), CONVERSIONS)
@pytest.mark.parametrize("array", NESTED, ids=lambda array: str(array.type))
def test_types_that_say_no_such_thing_are_unusable_where_they_say_something(
    convert: Any, kind: pa.DataType, array: pa.Array
) -> None:
    check(convert(array), kind, [UNUSABLE, None])


@pytest.mark.parametrize(("convert", "kind"), CONVERSIONS)
def test_a_column_of_no_rows_stays_one(convert: Any, kind: pa.DataType) -> None:
    for array in (pa.array([], pa.string()), pa.chunked_array([], pa.float64()), pa.nulls(0)):
        check(convert(array), kind, [])


@pytest.mark.parametrize(("convert", "kind"), CONVERSIONS)
def test_chunks_and_slices_make_no_difference(convert: Any, kind: pa.DataType) -> None:
    array = pa.array(["x", "7", None, "1", "2025-01-01"])
    chunked = pa.chunked_array([array.slice(0, 2), array.slice(2, 0), array.slice(2)])
    whole, pieces = convert(array), convert(chunked)
    assert pieces.values.equals(whole.values)
    assert pieces.unusable.equals(whole.unusable)
    assert convert(array.slice(1, 3)).values.equals(whole.values.slice(1, 3))
    assert whole.values.type == kind


def test_text_is_text_whatever_holds_it() -> None:
    values = ["a", None, "", "é😀"]
    encoded = [None if value is None else value.encode() for value in values]
    held: list[pa.Array] = [
        pa.array(values),
        pa.array(values, pa.large_string()),
        pa.array(values, pa.string_view()),
        pa.array(values).dictionary_encode(),
        pa.array(values, pa.large_string()).dictionary_encode(),
        pa.array(encoded, pa.binary()),
        pa.array(encoded, pa.large_binary()),
        pa.array(encoded, pa.binary_view()),
    ]
    for array in held:
        check(columns.text(array), pa.string(), values)
    check(columns.text(pa.array([b"ab", None], pa.binary(2))), pa.string(), ["ab", None])


def test_numbers_and_truths_are_written_out_as_text() -> None:
    check(columns.text(pa.array([7, -(2**63), None])), pa.string(), ["7", "-9223372036854775808", None])
    check(columns.text(pa.array([2**64 - 1], pa.uint64())), pa.string(), ["18446744073709551615"])
    check(columns.text(pa.array([7.0, 2.5, 1e300, -0.0, None])), pa.string(), ["7", "2.5", str(int(1e300)), "0", None])
    check(columns.text(pa.array([math.nan, math.inf, -math.inf])), pa.string(), ["nan", "inf", "-inf"])
    check(columns.text(pa.array([1.5], pa.float16())), pa.string(), ["1.5"])
    check(columns.text(pa.array([True, False, None])), pa.string(), ["true", "false", None])
    decimals = pa.array([Decimal("12.50"), Decimal("12.00"), None])
    check(columns.text(decimals), pa.string(), ["12.50", "12", None])
    check(columns.text(pa.array([3, None], pa.int8()).dictionary_encode()), pa.string(), ["3", None])


def test_times_are_no_text() -> None:
    check(columns.text(pa.array([date(2025, 1, 1)])), pa.string(), [UNUSABLE])
    check(columns.text(pa.array([0], pa.timestamp("us"))), pa.string(), [UNUSABLE])


def test_bytes_that_are_not_utf8_are_unusable_and_their_neighbours_are_not() -> None:
    wanted = ["ok", None, UNUSABLE, UNUSABLE, ""]
    check(columns.text(INVALID), pa.string(), wanted)
    check(columns.text(INVALID.cast(pa.binary())), pa.string(), wanted)
    check(columns.text(INVALID.slice(2, 2)), pa.string(), [UNUSABLE, UNUSABLE])
    check(columns.integer(text_of_bytes(b"7", b"\xff")), pa.int64(), [7, UNUSABLE])
    check(columns.number(text_of_bytes(b"0.5", b"\xff")), pa.float64(), [0.5, UNUSABLE])
    check(columns.truth(text_of_bytes(b"true", b"\xff")), pa.bool_(), [True, UNUSABLE])
    check(
        columns.instant(text_of_bytes(b"2025-01-01", b"\xff")),
        columns.INSTANT,
        [datetime(2025, 1, 1, tzinfo=UTC), UNUSABLE],
    )


def test_a_name_is_neither_empty_nor_nan() -> None:
    check(columns.name(pa.array(["a", "", None, "nan"])), pa.string(), ["a", None, None, "nan"])
    check(columns.name(pa.array([7.0, math.nan, None])), pa.string(), ["7", None, None])
    check(columns.name(pa.array([7, None])), pa.string(), ["7", None])
    check(columns.name(INVALID), pa.string(), ["ok", None, UNUSABLE, UNUSABLE, None])


def test_integers_come_from_every_number_that_is_whole_and_exact() -> None:
    largest, smallest = 2**63 - 1, -(2**63)
    check(columns.integer(pa.array([largest, smallest, None])), pa.int64(), [largest, smallest, None])
    check(columns.integer(pa.array([7], pa.int8())), pa.int64(), [7])
    check(columns.integer(pa.array([7, 2**63], pa.uint64())), pa.int64(), [7, UNUSABLE])
    floats = pa.array([7.0, 2.5, 2.0**53, 2.0**54, math.nan, math.inf, 1e300, -0.0, None])
    check(columns.integer(floats), pa.int64(), [7, UNUSABLE, 2**53, UNUSABLE, UNUSABLE, UNUSABLE, UNUSABLE, 0, None])
    decimals = pa.array(
        [Decimal("12.00"), Decimal("12.50"), None, Decimal(2**63), Decimal(largest)], pa.decimal128(25, 2)
    )
    check(columns.integer(decimals), pa.int64(), [12, UNUSABLE, None, UNUSABLE, largest])
    check(columns.integer(pa.array([True, None])), pa.int64(), [UNUSABLE, None])
    check(columns.integer(pa.array([date(2025, 1, 1)])), pa.int64(), [UNUSABLE])


def test_integers_come_from_text_of_digits_alone() -> None:
    texts = [
        "1",
        " -7 ",
        "+7",
        "007",
        str(2**63 - 1),
        str(2**63),
        "9" * 40,
        "1.0",
        "1e3",
        "0x1",
        "1_0",
        "٣",
        "",
        "x",
        None,
    ]
    wanted = [1, -7, 7, 7, 2**63 - 1, *[UNUSABLE] * 9, None]
    for array in (pa.array(texts), pa.array(texts, pa.large_string()), pa.array(texts).dictionary_encode()):
        check(columns.integer(array), pa.int64(), wanted)


def test_numbers_keep_nan_and_infinities() -> None:
    values = columns.number(pa.array([1.5, math.nan, math.inf, None])).values
    assert pc.is_nan(values).to_pylist() == [False, True, False, None]
    check(columns.number(pa.array([1.5, math.inf, None])), pa.float64(), [1.5, math.inf, None])
    check(columns.number(pa.array([2**53 + 1, None])), pa.float64(), [2.0**53, None])
    check(columns.number(pa.array([Decimal("0.10"), None])), pa.float64(), [0.1, None])
    check(columns.number(pa.array([1.5], pa.float16())), pa.float64(), [1.5])
    check(columns.number(pa.array([True])), pa.float64(), [UNUSABLE])
    texts = ["1.0048658277929109e-05", " .5 ", "5.", "-inf", "Infinity", "1e400", "1_0", "0x1p3", "1,5", "", "١", None]
    check(
        columns.number(pa.array(texts)),
        pa.float64(),
        [1.0048658277929109e-05, 0.5, 5.0, -math.inf, math.inf, math.inf, *[UNUSABLE] * 5, None],
    )
    assert pc.is_nan(columns.number(pa.array(["NaN"])).values).to_pylist() == [True]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(allow_nan=False)))
def test_doubles_survive_being_written_as_text(values: list[float]) -> None:
    written = pa.array([repr(value) for value in values], pa.string())
    check(columns.number(written), pa.float64(), list(values))
    check(columns.number(columns.text(pa.array(values, pa.float64())).values), pa.float64(), list(values))


def test_truths_come_from_booleans_zeros_ones_and_words() -> None:
    check(columns.truth(pa.array([True, False, None])), pa.bool_(), [True, False, None])
    check(columns.truth(pa.array([1, 0, 2, None])), pa.bool_(), [True, False, UNUSABLE, None])
    check(columns.truth(pa.array([1.0, 0.0, 0.5, math.nan])), pa.bool_(), [True, False, UNUSABLE, UNUSABLE])
    words = ["true", "T", " False ", "f", "1", "0", "yes", "", None]
    check(columns.truth(pa.array(words)), pa.bool_(), [True, True, False, False, True, False, UNUSABLE, UNUSABLE, None])


MOMENT = datetime(2025, 6, 1, 9, 11, 14, 635_000, tzinfo=UTC)
TICKS = 1_748_769_074_635


@pytest.mark.parametrize("zone", [None, "UTC", "America/Los_Angeles", "+05:30"])
def test_stored_instants_are_utc_in_every_unit_and_zone(zone: str | None) -> None:
    check(
        columns.instant(pa.array([TICKS // 1000], pa.timestamp("s", zone))),
        columns.INSTANT,
        [MOMENT.replace(microsecond=0)],
    )
    check(columns.instant(pa.array([TICKS], pa.timestamp("ms", zone))), columns.INSTANT, [MOMENT])
    check(columns.instant(pa.array([TICKS * 1000, None], pa.timestamp("us", zone))), columns.INSTANT, [MOMENT, None])
    check(columns.instant(pa.array([TICKS * 10**6], pa.timestamp("ns", zone))), columns.INSTANT, [MOMENT])
    encoded = pa.array([TICKS], pa.timestamp("ms", zone)).dictionary_encode()
    check(columns.instant(encoded), columns.INSTANT, [MOMENT])


def test_nanoseconds_are_cut_off_also_before_1970() -> None:
    ticks = pa.array([1_999, 999, 0, -1, -1_000, -1_001, None], pa.timestamp("ns"))
    assert columns.instant(ticks).values.cast(pa.int64()).to_pylist() == [1, 0, 0, -1, -1, -2, None]
    extremes = columns.instant(pa.array([-(2**63) + 1, 2**63 - 1], pa.timestamp("ns")))
    assert extremes.values.cast(pa.int64()).to_pylist() == [-9_223_372_036_854_776, 9_223_372_036_854_775]
    assert extremes.unusable.to_pylist() == [False, False]


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6)])
def test_instants_before_year_1_and_after_year_9999_are_unusable(unit: str, per_second: int) -> None:
    first, after = -62_135_596_800 * per_second, 253_402_300_800 * per_second
    ticks = pa.array([first, first - 1, after - 1, after, 2**63 - 1, -(2**63) + 1, None], pa.timestamp(unit))
    column = columns.instant(ticks)
    assert column.unusable.to_pylist() == [False, True, False, True, True, True, False]
    assert column.values.is_null().to_pylist() == [False, True, False, True, True, True, True]


def test_dates_are_midnights() -> None:
    midnight = datetime(2025, 1, 1, tzinfo=UTC)
    check(columns.instant(pa.array([date(2025, 1, 1), None], pa.date32())), columns.INSTANT, [midnight, None])
    check(columns.instant(pa.array([date(2025, 1, 1)], pa.date64())), columns.INSTANT, [midnight])
    check(
        columns.instant(pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())), columns.INSTANT, [UNUSABLE] * 2
    )
    # A date64 is to hold whole days and yet may not.
    check(columns.instant(pa.array([TICKS]).cast(pa.date64())), columns.INSTANT, [MOMENT])


def test_instants_are_read_from_text_with_and_without_a_zone() -> None:
    texts = [
        "2025-06-01T09:11:14.635Z",
        "2025-06-01 09:11:14.635",
        " 2025-06-01T11:11:14.635+02:00 ",
        "2025-06-01T09:11:14.6359999",
        "2025-06-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "yesterday",
        "",
        "1748769074",
        None,
    ]
    wanted = [
        MOMENT,
        MOMENT,
        MOMENT,
        MOMENT.replace(microsecond=635_999),
        datetime(2025, 6, 1, tzinfo=UTC),
        *[UNUSABLE] * 5,
        None,
    ]
    check(columns.instant(pa.array(texts)), columns.INSTANT, wanted)
    check(columns.instant(pa.array(texts, pa.large_string())), columns.INSTANT, wanted)


def test_numbers_are_no_instants() -> None:
    check(columns.instant(pa.array([TICKS, None])), columns.INSTANT, [UNUSABLE, None])
    check(columns.instant(pa.array([1.5, None])), columns.INSTANT, [UNUSABLE, None])
