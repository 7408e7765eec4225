"""What the page of a submission says of its source: how to use it, where it ran, what it proves, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from pipelines.pages import Page, counted, day, exact, figure, ratio, visible

Record = Mapping[str, Any]

# Of lists that may be long a page shows so many; `--json` has them all.
SHOWN = 30
_LONGEST_LINE = 100_000
_TAB = 4


def implementation_page(page: Page, record: Record) -> None:
    """A submission as an implementation.

    Args:
        page: where to print.
        record: what `sources.implementation` says of it.
    """
    artifact = record["artifact"]
    page.heading("How to use it")
    page.fields(
        [
            ("Source", how_to_use(artifact)),
            ("File", artifact["file_name"] if artifact else None),
            ("Language", artifact["language"] if artifact else None),
            ("Measured on", ", ".join(machine(place) for place in record["measured_on"]) or "nothing"),
            ("Declared for", ", ".join(artifact["declared_gpus"] or []) if artifact else None),
            ("Declared board", artifact["declared_leaderboard"] if artifact else None),
            ("Architectures", _all_of(record, "architectures")),
            ("Data types", _all_of(record, "dtypes")),
            *(("Revision digest", f"{row['implementation_digest']} ({', '.join(row['products'])})")
              for row in record["implementations"]),
            ("Evidence", f"{record['evidence_level']} at best" if record["evidence_level"] else "no ranked run"),
        ]
    )  # fmt: skip
    if artifact:
        page.fields(
            [
                ("Source digest", artifact["source_digest"]),
                ("Size", f"{artifact['source_bytes']} bytes"),
                ("Media type", artifact["media_type"]),
                ("Source licence", artifact["license"]),
                ("Family", _family(artifact)),
            ]
        )
    _evidence_table(page, record)
    _techniques_table(page, record)
    if record["change"]:
        page.heading("Change")
        page.fields(_change(record["change"]))


def source_lines(text: bytes) -> Iterator[str]:
    """A source line by line as a terminal can show it: what is no text, and whatever moves the cursor, as escapes."""
    for line in text.decode("utf-8", "backslashreplace").replace("\r\n", "\n").split("\n"):
        yield visible(line.expandtabs(_TAB), _LONGEST_LINE)


def print_text(text: bytes) -> None:
    """Print a source or a diff; nothing of it is folded."""
    for line in source_lines(text.removesuffix(b"\n")):
        click.echo(line)


def how_to_use(artifact: Record | None) -> str:
    """Whether the source can be had here, under what terms, and how long it is."""
    if artifact is None:
        return "not known here"
    lines = f", {counted(artifact['lines'], 'line')}" if artifact["lines"] is not None else ""
    kept = "mirrored" if artifact["text_stored"] else "not mirrored"
    return f"{kept}, licence {artifact['license']}{lines}"


def machine(place: Record) -> str:
    """A GPU with its fleet's label where that says more."""
    return place["gpu"] if place["runner"] in (None, place["gpu"]) else f"{place['gpu']} ({place['runner']})"


def _evidence_table(page: Page, record: Record) -> None:
    evidence = record["evidence"]
    if not evidence:
        return
    rest = f", the first {SHOWN}; --json has all" if len(evidence) > SHOWN else ""
    page.heading(f"Evidence on {counted(len({row['gpu'] for row in evidence}), 'GPU')}{rest}")
    page.table(
        ("gpu", "case", "figure", "rank", "author", "gap", "level"),
        [
            (
                machine(row),
                row["case_index"],
                f"{figure(row['primary_value'], row['primary_unit'])}, {row['primary_statistic']}",
                f"{row['rank']} of {row['cohort_runs']}",
                f"{row['author_rank']} of {row['cohort_authors']}" if row["author_rank"] else "–",
                ratio(row["gap_to_best"]),
                row["evidence_level"],
            )
            for row in evidence[:SHOWN]
        ],
        numbers=("case",),
    )


def _techniques_table(page: Page, record: Record) -> None:
    found = record["techniques"]
    if found:
        page.heading(f"{counted(len(found), 'technique')}, by {found[0]['extractor']}")
        page.table(
            ("trait", "value", "line", "where", "evidence"),
            [(row["trait"], row["value"], row["line"], row["context"], row["evidence"]) for row in found],
            numbers=("line",),
        )


def _change(change: Record) -> list[tuple[str, Any]]:
    counts = "not counted: a text was not read"
    if change["lines_added"] is not None:
        counts = f"+{change['lines_added']} −{change['lines_removed']}"
    return [
        ("Previous", f"submission/{change['previous_submission_id']} of {day(change['previous_submitted_at'])}"),
        ("Lines", counts),
        ("Line ends", "changed" if change["line_endings_changed"] else None),
        ("Value", _effect(change["value_ratio"])),
    ]


def _effect(value: float | None) -> str:
    if value is None:
        return "no cohort in common, or several"
    if value == 1:
        return "the same"
    return f"{exact(round(value, 4))}× the previous one, {'better' if value < 1 else 'worse'}"


def _family(artifact: Record) -> str | None:
    if artifact["family"] is None:
        return None
    first = artifact["family_first_submission_key"]
    return f"{counted(artifact['family_size'], 'source')} that are nearly the same, first in {first}"


def _all_of(record: Record, column: str) -> str:
    return ", ".join(sorted({value for row in record["implementations"] for value in row[column]}))
