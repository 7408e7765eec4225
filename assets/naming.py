"""Names and titles that are shown with documents, as their sources' rooms make them; no digest covers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assets.kernelbot import documents as kernelbot
from assets.kernelbot.terms import SOURCE as KERNELBOT
from assets.sol_execbench import environment as sol_execbench
from warehouse.identity import kebab

Row = Mapping[str, Any]

TITLE_LENGTH = 200


def run_metadata(row: Row) -> dict[str, Any]:
    """Name, title and, where there are any, labels of a run's document.

    Args:
        row: `source`, `problem`, `submission_id`, `case_index`, `axes`, `primary_metric`, `runner`, `author_name` and
            `labels`.
    """
    labels = {"labels": row["labels"]} if row["labels"] else {}
    number = row["submission_id"]
    if row["source"] == KERNELBOT:
        axes = None if row["primary_metric"] == "score" else row["axes"]
        return {**kernelbot.run_metadata(row["problem"], number, row["case_index"], axes), **labels}
    return {
        "name": sol_execbench.run_name(number),
        "title": sol_execbench.run_title(row["author_name"], row["problem"], row["runner"]),
        **labels,
    }


def protocol_metadata(row: Row) -> dict[str, Any]:
    """Name and title of a protocol: `source`, `primary_metric`, `primary_statistic` and `version`."""
    if row["source"] == KERNELBOT:
        return kernelbot.protocol_metadata(row["primary_statistic"] if row["primary_metric"] == "score" else None)
    version = row["version"]
    return {"name": sol_execbench.protocol_name(version), "title": sol_execbench.protocol_title(version)}


def environment_metadata(row: Row) -> dict[str, Any]:
    """Name and title of an environment: `source`, `primary_metric`, `runner` and `version`."""
    label, version = row["runner"], row["version"]
    if row["source"] == KERNELBOT:
        return kernelbot.environment_metadata(label, aggregate=row["primary_metric"] == "score")
    return {
        "name": sol_execbench.environment_name(label, version),
        "title": sol_execbench.environment_title(label, version),
    }


def implementation_metadata(row: Row) -> dict[str, Any]:
    """Name, title and, where the source names one, author: `source`, `problem`, `submission_id` and `author_name`."""
    number = row["submission_id"]
    if row["source"] == KERNELBOT:
        named = {"name": f"kernelbot-submission-{number}", "title": f"{row['problem']} · submission {number}"}
    else:
        title = " · ".join(part for part in (row["author_name"], row["problem"]) if part)
        named = {"name": sol_execbench.run_name(number), "title": title}
    return {**named, "authors": [{"name": row["author_name"]}]} if row["author_name"] else named


def implementation_slug(row: Row) -> str:
    """Name for addresses of an implementation: `source`, `problem`, `submission_id` and `author_name`."""
    if row["source"] == KERNELBOT:
        return kebab(f"kernelbot-{row['problem']}-{row['submission_id']}")
    return kebab(f"sol-{row['problem']}-{row['author_name'] or row['submission_id']}")


def workload_metadata(row: Row) -> dict[str, Any]:
    """Name and title of a case or suite: `kind`, `slug` and `title` of its problem, `external_id` and `axes`."""
    if row["kind"] == "suite":
        return {"name": kebab(f"{row['slug']}-suite"), "title": f"{row['title']} · suite"[:TITLE_LENGTH]}
    axes = sorted((row["axes"] or {}).items())
    words = "-".join(f"{name}{value}" for name, value in axes)
    title = ", ".join(f"{name}={value}" for name, value in axes)
    return {
        "name": kebab(f"{row['slug']}-{row['external_id'] or words}"),
        "title": f"{row['title']} · {title}"[:TITLE_LENGTH],
    }


def shape_summary(row: Row) -> str:
    """The shapes of a workload in a line: its `tensors`, else the count of its `suite_cases`, else its `axes`."""
    if row["tensors"]:
        shapes = (f"{name} {value['shape']}" for name, value in sorted(row["tensors"].items()))
    elif row["suite_cases"]:
        return f"suite of {len(row['suite_cases'])} cases"
    else:
        shapes = (f"{name}={value}" for name, value in sorted((row["axes"] or {}).items()))
    return ", ".join(shapes)[:TITLE_LENGTH]
