"""Text, figures and JSON as the command line prints them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pages import cell, chart, duration, exact, figure, instant, json_text, ratio, size, visible
from tests.commands import harmful


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x9b2J", r"\x9b2J"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("line\r\nnext\ttab", r"line\r\nnext\ttab"),
        ("nul\x00 del\x7f", r"nul\x00 del\x7f"),
        ("\ufeff\u2028", r"\ufeff\u2028"),
        ("\U000e0041", r"\U000e0041"),
        ("[bold]kept[/bold]", "[bold]kept[/bold]"),
        ("日本語 🦀👩\u200d🔬", "日本語 🦀👩\u200d🔬"),
        ("n" * 1000, "n" * 299 + "…"),
    ],
)
def test_text_is_shown_so_that_a_terminal_obeys_none_of_it(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_no_text_can_harm_a_terminal(text: str) -> None:
    assert harmful(visible(text)) == set()
    assert "\n" not in visible(text)
    assert harmful(json_text({text: [text]})) == set()


values = st.recursive(
    st.none() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_json_says_what_it_was_given(value: object) -> None:
    assert json.loads(json_text(value), parse_int=float) == value
    assert json.loads(json_text(value, None), parse_int=float) == value
    assert "\n" not in json_text(value, None)


def test_json_says_what_it_cannot_otherwise_say_as_text_or_null() -> None:
    value = {"nan": float("nan"), "decimal": Decimal("1.50"), "at": datetime(2025, 6, 1, 9, 11, 14, 635000, UTC)}
    assert json.loads(json_text(value)) == {"nan": None, "decimal": "1.50", "at": "2025-06-01T09:11:14.635Z"}
    assert json_text({"b": b"\x00\xff"}, None) == '{"b": "00ff"}'


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (4175913.45, "ns", "4.18 ms"),
        (4057360, "ns", "4.06 ms"),
        (118, "ns", "118 ns"),
        (99.96, "ns", "100 ns"),
        (999.4, "ns", "999 ns"),
        (999.6, "ns", "1.00 µs"),
        (59575.79732838796, "ns", "59.6 µs"),
        (143901, "ns", "144 µs"),
        (6221992156, "ns", "6.22 s"),
        (12345.6e9, "ns", "12346 s"),
        (1.0048658277929109e-05, "s", "10.0 µs"),
        (0.0073761345439469495, "s", "7.38 ms"),
        (0.143901, "ms", "144 µs"),
        (0.734476, "1", "0.734476"),
        (16, None, "16"),
        (None, "ns", "–"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_suits_it(value: float | None, unit: str | None, shown: str) -> None:
    assert figure(value, unit) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1e-7, "1e-7"), (4057360.0, "4057360"), (1e21, "1e+21"), (-0.0, "0"), (2**60, str(2**60)), (True, "true")],
)
def test_a_number_is_shown_to_the_digit(number: float, shown: str) -> None:
    assert exact(number) == shown
    assert cell(number) == shown


def test_an_instant_has_as_many_decimals_as_it_needs() -> None:
    moment = datetime(2025, 6, 1, 9, 11, 14, 635000, UTC)
    assert instant(moment) == "2025-06-01T09:11:14.635Z"
    assert instant(moment + timedelta(microseconds=1)) == "2025-06-01T09:11:14.635001Z"
    assert instant(moment.replace(tzinfo=None)) == "2025-06-01T09:11:14.635Z"
    assert instant(None) == "–"


def test_lengths_sizes_and_factors_are_short() -> None:
    assert [duration(seconds) for seconds in (5, 119, 120, 86400, 2 * 86400, None)] == [
        "5 seconds", "119 seconds", "2 minutes", "24 hours", "2 days", "–",
    ]  # fmt: skip
    assert [size(count) for count in (999, 1000, 16_600_000, 2_500_000_000_000)] == [
        "999 B", "1.0 kB", "16.6 MB", "2500.0 GB",
    ]  # fmt: skip
    assert [ratio(value) for value in (1.0162, 458.2, None)] == ["1.02×", "458×", "–"]


def test_a_chart_falls_where_the_figure_falls() -> None:
    start = datetime(2025, 1, 1, tzinfo=UTC)
    lines = chart([(start, 100.0), (start + timedelta(days=5), 10.0), (start + timedelta(days=10), 1.0)],
                  start + timedelta(days=10), width=11, height=5)  # fmt: skip
    assert lines == [
        "●────┐",
        "     │",
        "     ●────┐",
        "          │",
        "          ●",
    ]
    assert chart([(start, 1.0)], start, width=5, height=5) == ["●────"]
