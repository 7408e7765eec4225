"""What one wants to look at of a new snapshot: its boards and records as pictures, the night's changes as a table."""

from __future__ import annotations

import base64
import io
import logging
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.snapshots import Snapshot
from warehouse.statements import statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOARDS = 30
LINES = 6
CHANGES = 10
_LONGEST_LABEL = 48
_LONGEST_TICK = 40
_WIDTH, _DOTS_PER_INCH = 9.0, 80


def pictures(snapshot: Snapshot) -> dict[str, str]:
    """Markdown by name: `runs_per_board` and `record_progress` as images, `changes` as a table.

    Args:
        snapshot: a whole one.
    """
    with snapshot.open() as connection:
        boards = _rows(connection, "boards", boards=BOARDS)
        progress = _rows(connection, "progress", boards=LINES)
        changes = _rows(connection, "changes", changes=CHANGES)
    return {
        "runs_per_board": _image(runs_per_board(boards), "Runs of each board"),
        "record_progress": _image(record_progress(progress), "Records over time"),
        "changes": changes_table(changes),
    }


def runs_per_board(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """A PNG image of bars: `rows` are source, problem, eligible runs and other runs of each board, largest first."""

    def draw(axes: Axes) -> None:
        names = [_label(problem, _LONGEST_TICK) for _, problem, _, _ in rows]
        places = range(len(rows))
        eligible = [row[2] for row in rows]
        axes.barh(places, eligible, color="#2a6f97", label="eligible")
        axes.barh(places, [row[3] for row in rows], left=eligible, color="#c9d6df", label="others")
        # Upstream's names are no formulas.
        axes.set_yticks(places, names, parse_math=False)
        axes.invert_yaxis()
        axes.set_xlabel("runs")
        axes.legend(loc="lower right", frameon=False)

    return _drawn(draw, height=1.2 + 0.24 * max(len(rows), 4), left=0.4)


def record_progress(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """A PNG image of falling lines: `rows` are problem, GPU, instant and share of the first record, line by line."""

    def draw(axes: Axes) -> None:
        for (problem, gpu), line in groupby(rows, key=lambda row: (row[0], row[1])):
            points = [(at, share) for _, _, at, share in line]
            [drawn] = axes.step(*zip(*points, strict=True), where="post", marker=".")
            drawn.set_label(_label(f"{problem}, {gpu}"))
        axes.set_ylabel("share of the first record")
        axes.set_ylim(bottom=0)
        if rows:
            legend = axes.legend(frameon=False, fontsize="small")
            for text in legend.get_texts():
                text.set_parse_math(False)

    return _drawn(draw, height=4.5, left=0.08)


def changes_table(rows: Sequence[tuple[Any, ...]]) -> str:
    """A Markdown table of movements, as `sql/pictures/changes.sql` gives them."""
    if not rows:
        return "Nothing has moved."
    lines = ["| what | board | GPU | who | rank | value |", "| --- | --- | --- | --- | --- | --- |"]
    for kind, problem, case, gpu, author, rank_before, rank_after, value_before, value_after, unit in rows:
        board = f"{problem}, case {case}" if case is not None else problem
        rank, value = _change(rank_before, rank_after), _change(_figure(value_before), _figure(value_after))
        cells = (kind, board, gpu, author, rank, f"{value} {unit or ''}".strip())
        lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
    return "\n".join(lines)


def _rows(connection: duckdb.DuckDBPyConnection, name: str, **parameters: int) -> list[tuple[Any, ...]]:
    return connection.execute(statement(f"pictures/{name}"), parameters).fetchall()


def _drawn(draw: Callable[[Axes], None], height: float, left: float) -> bytes:
    """A picture of a height in inches, with so much of its width left for labels: to measure them is to draw twice."""
    # It takes half a second to import, and says on every machine something of its own about fonts.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), dpi=_DOTS_PER_INCH)
    axes = figure.subplots(gridspec_kw={"left": left, "right": 0.97, "bottom": 0.6 / height, "top": 1 - 0.2 / height})
    draw(axes)
    axes.spines[["top", "right"]].set_visible(False)
    written = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(written, format="png", metadata={"Software": None})
    return written.getvalue()


def _image(png: bytes, name: str) -> str:
    return f"![{name}](data:image/png;base64,{base64.b64encode(png).decode()})"


def _label(text: str | None, longest: int = _LONGEST_LABEL) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in text or "")
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _escaped(cell: Any) -> str:
    """A cell in which nothing is markup: upstream's names might be pictures of another's server."""
    return re.sub(r"([^\w\s.,:…→–µ])", r"\\\1", _label("–" if cell is None else str(cell)), flags=re.ASCII)


def _change(before: Any, after: Any) -> str:
    return f"{'–' if before is None else before} → {'–' if after is None else after}"


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"
