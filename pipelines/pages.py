"""How anything gets onto the terminal: upstream's text made harmless, figures in human units, JSON, fields and tables.

All text here comes from strangers. Nothing is printed but through `visible`, and nothing is read as markup.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, log
from typing import Any
from uuid import UUID

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from warehouse.identity import CanonicalError, canonical_json

TEXT_LENGTH = 300
# Of names and the like: several stand beside each other.
CELL_LENGTH = 60
# Wide enough for a digest beside its name where nobody says how wide the page is.
WIDTH_OF_PIPES = 160
# They join letters and emoji and reorder nothing.
_JOINERS = "\u200c\u200d"
_UNITS = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def visible(text: str, limit: int = TEXT_LENGTH) -> str:
    """Text that cannot move the cursor, colour, reorder or hide anything, on one line of at most `limit` characters.

    Control characters, escape and bidirectional marks, and whatever else has no glyph are written as escapes.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isprintable():
        return text
    return "".join(_escape(character) if _hidden(character) else character for character in text)


def json_text(value: Any, indent: str | None = "") -> str:
    """JSON over several lines, or on one where `indent` is None; nothing in it that a terminal would obey.

    Numbers are as RFC 8785 writes them, members in the order given.
    """
    if isinstance(value, Mapping):
        inner = None if indent is None else indent + "  "
        members = [f"{json_text(str(name), None)}: {json_text(member, inner)}" for name, member in value.items()]
        return _enclosed("{", members, "}", indent)
    if isinstance(value, list | tuple):
        inner = None if indent is None else indent + "  "
        return _enclosed("[", [json_text(member, inner) for member in value], "]", indent)
    value = plain(value)
    if not isinstance(value, str):
        return exact(value)
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(json.dumps(character)[1:-1] if _hidden(character) else character for character in text)


def plain(value: Any) -> Any:
    """A value of DuckDB as JSON has them: instants in UTC, what JSON cannot say as text, NaN and infinities as null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, date | time | timedelta | UUID | Decimal):
        return str(value)
    return value


def exact(number: float | bool | None) -> str:
    """A number to the digit, as RFC 8785 writes it."""
    if isinstance(number, int) and not isinstance(number, bool):
        return str(number)
    try:
        return canonical_json(number)
    except CanonicalError:
        return str(number)


def instant(moment: datetime | None) -> str:
    """An instant in UTC with three decimals, six where it has them; a dash for none."""
    if moment is None:
        return "–"
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    decimals = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=decimals) + "Z"


def day(moment: datetime | None) -> str:
    """The day of an instant, in UTC."""
    return instant(moment)[:10]


def figure(value: float | None, unit: str | None) -> str:
    """A time to three digits in the unit that suits it, as in `4.18 ms`; another figure with its unit."""
    if value is None:
        return "–"
    if unit not in _NANOSECONDS:
        return f"{exact(value)} {unit}" if unit and unit != "1" else exact(value)
    nanoseconds = value * _NANOSECONDS[unit]
    for name, size in _UNITS:
        text = _three_digits(nanoseconds / size)
        if abs(float(text)) < 1000:
            return f"{text} {name}"
    return f"{nanoseconds / 1e9:.0f} s"


def measured(record: Mapping[str, Any]) -> str:
    """A run's primary measurement, as in `4.18 ms, mean of 20`."""
    if record["primary_value"] is None:
        return "no figure"
    text = f"{figure(record['primary_value'], record['primary_unit'])}, {record['primary_statistic']}"
    if record.get("primary_metric") == "score":
        text += " score"
    return f"{text} of {record['sample_count']}" if record["sample_count"] is not None else text


def counted(count: int, name: str) -> str:
    """A number of things, as in `1 run` or `2 runs`."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def ratio(value: float | None) -> str:
    """A factor, as in `1.02×`."""
    return "–" if value is None else f"{value:.2f}×" if value < 100 else f"{value:.0f}×"


def duration(seconds: float | None) -> str:
    """A length of time in the largest unit of which there are two."""
    if seconds is None:
        return "–"
    for name, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def size(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    value = float(count)
    for name in ("B", "kB", "MB", "GB"):
        if value < 1000 or name == "GB":
            break
        value /= 1000
    return f"{count} B" if count < 1000 else f"{value:.1f} {name}"


def bindings(axes: Mapping[str, Any] | None) -> str:
    """Axes and their values on one line."""
    return ", ".join(f"{name}={value}" for name, value in (axes or {}).items())


def shell_command(*words: str) -> str:
    """A command line to paste into a shell."""
    return shlex.join(words)


def cell(value: Any) -> str:
    """A value on one line as its text alone: lists and objects as JSON, numbers to the digit, a dash for null."""
    value = plain(value)
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return json_text(value, None)


class Page:
    """What a command prints: headings, fields, tables and lines, in order."""

    def __init__(self) -> None:
        if reconfigure := getattr(sys.stdout, "reconfigure", None):
            # A terminal that has no such letter gets its escape.
            reconfigure(errors="backslashreplace")
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        self._console = Console(highlight=False, markup=False, emoji=False, width=WIDTH_OF_PIPES if piped else None)

    def line(self, text: str = "", style: str = "") -> None:
        """One line, folded where the page is narrower."""
        self._console.print(Text(visible(text, 2000), style), soft_wrap=True)

    def heading(self, text: str) -> None:
        """A heading with an empty line before it."""
        self.line()
        self.line(text, "bold")

    def fields(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values; a value that is None or empty is left out."""
        shown = [
            (visible(name), visible(cell(value), 1000)) for name, value in pairs if value not in (None, "", [], {})
        ]
        width = max([len(name) for name, _ in shown], default=0)
        for name, text in shown:
            # Folded by the terminal itself, so that a digest can be copied whole.
            self._console.print(Text.assemble((f"{name:<{width}}  ", "dim"), text), soft_wrap=True)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        numbers: Sequence[str] = (),
        length: int = CELL_LENGTH,
    ) -> None:
        """A table of cells cut at a length; the columns named in `numbers` are set to the right."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for name in columns:
            justify: JustifyMethod = "right" if name in numbers else "left"
            table.add_column(Text(visible(name)), justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(cell(value), length)) for value in row))
        self._console.print(table)


def chart(points: Sequence[tuple[datetime, float]], until: datetime, width: int = 64, height: int = 12) -> list[str]:
    """A falling figure over time as lines of text, its axis logarithmic.

    Args:
        points: instants and the figure from then on, oldest first, each smaller than the one before and positive.
        until: where the last one is drawn to.
        width: columns.
        height: lines.
    """
    first, top, bottom = points[0][0], log(points[0][1]), log(points[-1][1])
    seconds = max((until - first).total_seconds(), 1e-6)
    columns = [min(round((at - first).total_seconds() / seconds * (width - 1)), width - 1) for at, _ in points]
    lines = [round((top - log(value)) / ((top - bottom) or 1.0) * (height - 1)) for _, value in points]
    cells = [[" "] * width for _ in range(height)]
    for index, (column, line) in enumerate(zip(columns, lines, strict=True)):
        end = columns[index + 1] if index + 1 < len(columns) else width - 1
        for position in range(column, end + 1):
            cells[line][position] = "─"
        if index:
            cells[lines[index - 1]][column] = "┐"
            for row in range(lines[index - 1] + 1, line):
                cells[row][column] = "│"
    for column, line in zip(columns, lines, strict=True):
        cells[line][column] = "●"
    return ["".join(row).rstrip() for row in cells[: max(lines) + 1]]


def _enclosed(first: str, members: list[str], last: str, indent: str | None) -> str:
    if indent is None or not members:
        return first + ", ".join(members) + last
    return first + ",".join(f"\n{indent}  {member}" for member in members) + f"\n{indent}{last}"


def _hidden(character: str) -> bool:
    return not character.isprintable() and character not in _JOINERS


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _three_digits(value: float) -> str:
    text = f"{value:#.3g}"
    return (f"{float(text):.0f}" if "e" in text else text).rstrip(".") if abs(value) >= 1e-4 else f"{value:.3g}"
