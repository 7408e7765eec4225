"""How a run is cited: by its digest, out of a snapshot with a digest, with its source's attribution."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import quote

from pipelines.pages import figure, visible

_BIBTEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def citation(run: Mapping[str, Any], accessed: date, public_url: str | None) -> dict[str, str]:
    """Parts of a citation by name; `link` only where the snapshots are published somewhere.

    Args:
        run: a run of `records.run`.
        accessed: the day of access, in UTC.
        public_url: where the home's snapshots are published.
    """
    case = f", case {run['case_index']}" if run["case_index"] is not None else ""
    on = f" on {run['gpu']}" if run["gpu"] else ""
    parts = {
        "title": f"{run['problem_title'] or run['problem']}{case}{on}: {run['revision']}",
        "author": run["project_name"] or "author not stated",
        "figure": figure(run["primary_value"], run["primary_unit"]),
        "run": run["run_id"],
        "run_digest": run["run_digest"] or "none",
        "snapshot": run["snapshot_id"],
        "snapshot_digest": run["snapshot_digest"],
        "attribution": f"{run['source_attribution']}, {run['source_url']}",
        "licence": run["source_license"],
        "accessed": accessed.isoformat(),
    }
    if public_url:
        parts["link"] = f"{public_url.rstrip('/')}/snapshots/{run['snapshot_id']}/manifest.json#{quote(run['run_id'])}"
    return {name: visible(value) for name, value in parts.items()}


def sentence(parts: Mapping[str, str]) -> str:
    """The citation as text, one part a line."""
    lines = [
        f"{parts['author']}. {parts['title']}. {parts['figure']}.",
        f"Run {parts['run']}, {parts['run_digest']}.",
        f"kernelmart snapshot {parts['snapshot']}, {parts['snapshot_digest']}.",
        f"Source: {parts['attribution']} ({parts['licence']}).",
        f"Accessed {parts['accessed']}.",
    ]
    return "\n".join([*lines, parts["link"]] if "link" in parts else lines)


def bibtex(parts: Mapping[str, str]) -> str:
    """The citation as a BibTeX entry, named after the run's digest."""
    safe = {name: "".join(_BIBTEX.get(letter, letter) for letter in value) for name, value in parts.items()}
    note = f"Run {safe['run']}, {safe['run_digest']}. Source: {safe['attribution']} ({safe['licence']})"
    fields = {
        "author": f"{{{safe['author']}}}",
        "title": f"{{{safe['title']}}}",
        "year": parts["snapshot"][:4],
        "publisher": "kernelmart",
        "version": f"snapshot {safe['snapshot']}, {safe['snapshot_digest']}",
        "note": note,
        "urldate": parts["accessed"],
    }
    if "link" in parts:
        fields["url"] = parts["link"]
    digest = parts["run_digest"].removeprefix("sha256:")[:12]
    body = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@misc{{kernelmart-{digest},\n{body}}}"
