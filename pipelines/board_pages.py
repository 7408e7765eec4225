"""The pages of `kernelmart top` and `kernelmart compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pipelines.pages import Page, bindings, chart, counted, day, duration, exact, figure, instant, measured, ratio
from pipelines.record_pages import place, short, short_digest

Record = Mapping[str, Any]


def board_page(page: Page, board: Record, places: Sequence[Record], *, every_run: bool, as_of: datetime | None) -> None:
    """A leaderboard.

    Args:
        page: where to print.
        board: a board of `records.boards`.
        places: its first places.
        every_run: whether they are those of all runs, or of each author's best.
        as_of: the instant that it is shown at.
    """
    page.line(board_title(board), "bold")
    best, median = (figure(board[name], board["unit"]) for name in ("best_value", "median_value"))
    page.line(
        f"{counted(board['runs'], 'run')}, {counted(board['authors'], 'author')}; best {best}, median {median}; "
        f"observed {day(board['first_observed_at'])} to {day(board['last_observed_at'])}"
    )
    if as_of:
        page.line(f"as it stood at {instant(as_of)}")
    page.line(f"{'every run' if every_run else 'each author’s best'}; board {board['comparison_key']}")
    rank = "rank" if every_run else "author rank"
    page.line()
    page.table(
        (rank, "author", "figure", board["unit"], "gap", "samples", "observed", "run"),
        [
            (
                f"{row['rank']}{'=' if row['tied'] else ''}" if every_run else str(row["author_rank"]),
                row["author"],
                figure(row["value"], row["unit"]),
                row["value"],
                ratio(row["gap_to_best"]),
                row["sample_count"],
                day(row["observed_at"]),
                short(row),
            )
            for row in places
        ],
        numbers=(rank, "figure", board["unit"], "gap", "samples"),
    )


def history_page(page: Page, board: Record, falls: Sequence[Record], until: datetime) -> None:
    """The fall of a board's best, drawn and listed.

    Args:
        page: where to print.
        board: a board of `records.boards`.
        falls: `records.history` of it.
        until: where the drawing ends.
    """
    page.heading("The best over time")
    if not falls:
        page.line("no run says when it was observed")
        return
    lines = chart([(fall["observed_at"], fall["value"]) for fall in falls], max(until, falls[-1]["observed_at"]))
    labels = {0: figure(falls[0]["value"], board["unit"]), len(lines) - 1: figure(falls[-1]["value"], board["unit"])}
    for number, line in enumerate(lines):
        page.line(f"{labels.get(number, ''):>10} ┤{line}")
    page.line(f"{'':>11}{day(falls[0]['observed_at'])} to {day(until)}, logarithmic")
    page.line()
    page.table(
        ("observed", "best", "faster", "by", "held for", "run"),
        [
            (
                instant(fall["observed_at"]),
                figure(fall["value"], fall["unit"]),
                ratio(fall["speedup"]),
                fall["author"],
                duration(fall["held_for_s"]) if fall["held_for_s"] is not None else "stands",
                short(fall),
            )
            for fall in falls
        ],
        numbers=("best", "faster"),
    )


def compare_page(page: Page, first: Record, second: Record) -> None:
    """Two runs of one cohort, side by side.

    Args:
        page: where to print.
        first: a run of `records.run`.
        second: another of the same comparison key.
    """
    a, b = first["primary_value"], second["primary_value"]
    unit = first["primary_unit"]
    page.line(" · ".join(filter(None, (first["problem_title"] or first["problem"], first["gpu"]))), "bold")
    page.line(f"board {first['comparison_key']}")
    if first["run_id"] == second["run_id"]:
        page.line("this run is the first of its board: it is compared with itself")
    elif a == b:
        page.line(f"equal: {figure(a, unit)}")
    else:
        faster, slower = ("A", "B") if a < b else ("B", "A")
        page.line(
            f"{faster} is {ratio(max(a, b) / min(a, b))} as fast as {slower}; A − B = "
            f"{'−' if a < b else ''}{figure(abs(a - b), unit)}; A / B = {exact(a / b)}"
        )
    page.fields([("A", first["run_id"]), ("B", second["run_id"])])
    page.line()
    page.table(("", "A", "B"), [(name, _of(first, name, value), _of(second, name, value)) for name, value in _LINES])
    page.heading("Figures")
    figures = [_figures(run) for run in (first, second)]
    page.table(
        ("", "A", "B", "A / B"),
        [
            (name, *(run.get(name) for run in figures), _quotient(figures[0].get(name), figures[1].get(name)))
            for name in dict.fromkeys([*figures[0], *figures[1]])
        ],
        numbers=("A", "B", "A / B"),
    )


def board_title(board: Record) -> str:
    """What a board ranks, on one line."""
    parts = [" = ".join(board["problems"])]
    if board["case_indices"]:
        parts.append(f"case {', '.join(map(str, board['case_indices']))}")
    parts.append(board["gpu"])
    if labels := [label for label in board["runners"] if label not in board["gpu"]]:
        parts.append(f"({', '.join(labels)})")
    if board["version"]:
        parts.append(f"stack {board['version']}")
    return " · ".join(parts)


# Lines of a comparison: what to read off each run.
_LINES: tuple[tuple[str, str], ...] = (
    ("project", "project_name"),
    ("revision", "revision"),
    ("measurement", ""),
    ("place", ""),
    ("case", "case_index"),
    ("axes", "axes"),
    ("implementation", "implementation_digest"),
    ("labels", "labels"),
    ("observed", "observed_at"),
    ("run digest", "run_digest"),
)


def _of(run: Record, name: str, column: str) -> Any:
    if name == "measurement":
        return measured(run)
    if name == "place":
        return place(run)
    if column.endswith("_digest"):
        return short_digest(run[column])
    return bindings(run[column]) if column in ("axes", "labels") else run[column]


def _figures(run: Record) -> dict[str, float]:
    """All figures of a run by name: those of its document, then the source's own."""
    stated = {f"{row['metric']} {row['statistic']} {row['unit']}": row["value"] for row in run["measurements"]}
    return {**stated, **{f"native {name}": value for name, value in run["native_metrics"].items()}}


def _quotient(a: float | None, b: float | None) -> str:
    return f"{a / b:.4f}" if a is not None and b else "–"
