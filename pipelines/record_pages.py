"""The pages of `kernelmart show`: a run, a submission, a problem, or one of the documents that a run refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.pages import (
    Page,
    bindings,
    cell,
    counted,
    day,
    exact,
    figure,
    instant,
    measured,
    ratio,
)

Record = Mapping[str, Any]

# Of lists that may be long a page shows so many; `--json` has them all.
SHOWN = 30


def run_page(page: Page, run: Record, command: str) -> None:
    """A run: its figure and place first, then all that is known of it.

    Args:
        page: where to print.
        run: a run of `records.run`.
        command: what gives all results of the problem.
    """
    page.line(_run_title(run), "bold")
    page.line(f"{measured(run)}{_exactly(run)}")
    page.line(place(run))
    page.fields(
        [
            ("Not ranked", ", ".join(run["ineligible_reasons"])),
            ("Flags", ", ".join(run["flags"])),
        ]
    )
    page.heading("Measurements")
    page.table(
        ("metric", "statistic", "value", "unit", "", "samples"),
        [
            (
                row["metric"],
                row["statistic"],
                row["value"],
                row["unit"],
                figure(row["value"], row["unit"]),
                row["sample_count"],
            )
            for row in run["measurements"]
        ],
        numbers=("value", "samples"),
    )
    if run["native_metrics"]:
        page.heading("Figures of the source")
        page.fields(run["native_metrics"].items())
    page.heading("Comparison")
    page.fields(
        [
            ("Comparison key", run["comparison_key"]),
            ("Policy", run["ranking_policy"]),
            ("Author's place", f"{run['author_rank']} of {run['cohort_authors']}" if run["author_rank"] else None),
            ("Percentile", run["percentile"]),
            ("First", run["cohort_best_run_id"]),
        ]
    )
    page.heading("Implementation")
    page.fields(
        [
            ("Implementation", run["implementation_digest"]),
            ("Identity", run["identity"]),
            ("Language", run["language"]),
            ("Hardware", ", ".join([*(run["architectures"] or []), *(run["products"] or [])])),
            ("Data types", ", ".join(run["dtypes"] or [])),
            *_project(run),
            ("Licence declared", run["license_declared"]),
            ("Licence concluded", run["license_concluded"]),
            ("Artifacts", artifacts(run)),
        ]
    )
    page.heading("Workload")
    suite = run["suite_cases"]
    page.fields(
        [
            ("Problem", f"{run['problem_title'] or run['problem']} ({run['problem']}, {run['problem_family']})"),
            ("Problem digest", run["problem_digest"]),
            ("Case", exact(run["case_index"]) if run["case_index"] is not None else None),
            ("Workload", run["workload_digest"]),
            ("Axes", bindings(run["axes"])),
            *((f"Tensor {name}", tensor(value)) for name, value in (run["tensors"] or {}).items()),
            ("Suite", f"{counted(len(suite), 'case')}, {run['suite_statistic']}" if suite else None),
            *((f"Suite case {index}", bindings(case["axes"])) for index, case in enumerate((suite or [])[:SHOWN])),
        ]
    )
    page.heading("Correctness")
    page.fields(
        [
            ("Correctness", correctness(run["status"])),
            ("Judged by", run["correctness"]),
            ("Correctness key", run["correctness_key"]),
        ]
    )
    page.heading("Protocol")
    page.fields(
        [
            ("Protocol", run["protocol_digest"]),
            ("Harness", " ".join(filter(None, (run["protocol_harness"], run["protocol_version"])))),
            ("Repository", run["protocol_repository"]),
            ("Timer", run["protocol_timer"]),
            ("Statistic", run["protocol_primary_statistic"]),
            ("Reference", run["protocol_correctness_reference"]),
            ("Family", run["protocol_family"]),
            ("Notes", run["protocol_notes"]),
        ]
    )
    page.heading("Environment")
    page.fields(
        [
            ("Environment", run["environment_digest"]),
            ("GPU", run["gpu"]),
            ("Architecture", run["architecture"]),
            ("Vendor", run["environment_vendor"]),
            ("Runner", run["runner"]),
            ("Software", run["environment_software"]),
            *((f"Label {name}", value) for name, value in run["labels"].items()),
            ("System", run["system"]),
        ]
    )
    page.heading("Where it comes from")
    page.fields(
        [
            ("Run", run["run_id"]),
            ("Run digest", run["run_digest"] or "none: the run has no document"),
            ("External id", run["external_id"]),
            ("Mode", run["mode"]),
            ("Evidence", f"{run['evidence_level']}: the source says so, nobody here repeated it"),
            ("Observed", instant(run["observed_at"])),
            ("Imported", instant(run["imported_at"])),
            *_source(run),
            ("File", f"{run['locator']}, item {run['item']}"),
            ("File digest", run["content_digest"]),
            ("Revision", run["source_revision"]),
            ("Snapshot", run["snapshot_id"]),
            ("All results", command),
        ]
    )


def submission_page(page: Page, submission: Record, command: str) -> None:
    """A submission and all its runs with their ranks.

    Args:
        page: where to print.
        submission: a submission of `records.submission`.
        command: what gives all results of the problem.
    """
    title = submission["problem_title"] or submission["problem"]
    page.line(f"{title} · submission {submission['submission_id']}", "bold")
    page.fields(
        [
            ("Source", submission["source_name"]),
            ("Problem", submission["problem"]),
            *_project(submission),
            ("Submitted", instant(submission["submitted_at"])),
            ("Status", submission["upstream_status"]),
            ("Score", figure(submission["score_s"], "s") if submission["score_s"] is not None else None),
            ("Code id", submission["code_id"]),
            ("Licence declared", submission["license_declared"]),
            ("Licence concluded", submission["license_concluded"]),
            ("Artifacts", artifacts(submission)),
            ("Licence", submission["source_license"]),
            ("Attribution", submission["source_attribution"]),
            ("All results", command),
        ]
    )
    page.heading(counted(len(submission["runs"]), "run"))
    page.table(
        ("case", "gpu", "status", "figure", "rank", "gap", "not ranked", "run"),
        [
            (
                row["case_index"],
                row["runner"] or row["gpu"],
                row["status"],
                measured(row),
                _rank(row),
                ratio(row["gap_to_best"]),
                ", ".join(row["ineligible_reasons"]),
                short(row),
            )
            for row in submission["runs"]
        ],
        numbers=("case",),
    )


def problem_page(page: Page, problem: Record, command: str) -> None:
    """A problem: its facts, cases and boards.

    Args:
        page: where to print.
        problem: a problem of `records.problem`.
        command: what lists its boards.
    """
    page.line(problem["title"], "bold")
    page.fields(
        [
            ("Problem", problem["problem"]),
            ("Problem digest", problem["problem_digest"]),
            ("Slug", problem["slug"]),
            ("Source", f"{problem['source_name']}, {problem['source_url']}"),
            ("Family", problem["family"]),
            ("Scoring", problem["scoring"]),
            ("Ranking by", problem["ranking_by"]),
            ("Tags", ", ".join(problem["tags"])),
            ("Facts", "curated" if problem["curated"] else "none beyond the name"),
            ("Upstream id", problem["upstream_id"]),
            ("Deadline", instant(problem["deadline_at"]) if problem["deadline_at"] else None),
            ("Submissions", problem["submissions"]),
            ("Runs", f"{problem['runs']}, of which {problem['eligible_runs']} ranked"),
            ("Not ranked", ", ".join(f"{row['reason']} {row['runs']}" for row in problem["ineligible"])),
            *((f"Axis {name}", _axis(axis)) for name, axis in problem["axes"].items()),
            *((f"Input {argument['name']}", tensor(argument)) for argument in problem["inputs"]),
            *((f"Output {argument['name']}", tensor(argument)) for argument in problem["outputs"]),
            ("Licence", problem["source_license"]),
            ("Attribution", problem["source_attribution"]),
            ("Leaderboards", command),
        ]
    )
    cases = problem["cases"]
    page.heading(_some(len(cases), "case"))
    page.table(
        ("case", "kind", "workload", "axes", "baseline ms", "bound ms"),
        [
            (
                ", ".join(map(str, row["case_indices"] or [])) or row["external_id"],
                row["kind"],
                short_digest(row["workload_digest"]),
                bindings(row["axes"]) if row["kind"] == "case" else f"{len(row['suite_cases'] or [])} cases",
                row["baseline_latency_ms"],
                row["sol_bound_ms"],
            )
            for row in cases[:SHOWN]
        ],
        numbers=("baseline ms", "bound ms"),
    )
    boards_table(page, problem["boards"], SHOWN)


def document_page(page: Page, record: Record) -> None:
    """An implementation, workload, protocol, environment or source text, and where it is used."""
    apart = {"kind", "document", "runs", "boards"}
    page.line("Source text" if record["kind"] == "text" else record["kind"].capitalize(), "bold")
    page.fields((name.replace("_", " ").capitalize(), value) for name, value in record.items() if name not in apart)
    page.line(cell(record.get("document", "")))
    if "runs" in record:
        page.heading(_some(len(record["runs"]), "run"))
        page.table(
            ("case", "gpu", "status", "figure", "rank", "run"),
            [
                (
                    row["case_index"],
                    row["gpu"],
                    row["status"],
                    figure(row["primary_value"], row["primary_unit"]),
                    _rank(row),
                    short(row),
                )
                for row in record["runs"][:SHOWN]
            ],
            numbers=("case",),
        )
    if "boards" in record:
        boards_table(page, record["boards"], SHOWN)


def boards_table(page: Page, boards: Sequence[Record], limit: int | None = None) -> None:
    """Boards with their counts and bests."""
    page.heading(_some(len(boards), "board", limit))
    page.table(
        ("problem", "case", "gpu", "label", "stack", "best", "by", "runs", "authors", "last", "board"),
        [
            (
                ", ".join(board["problems"]),
                ", ".join(map(str, board["case_indices"])),
                board["gpu"],
                ", ".join(board["runners"]),
                board["version"],
                figure(board["best_value"], board["unit"]),
                board["best_author"],
                board["runs"],
                board["authors"],
                day(board["last_observed_at"]),
                short_digest(board["comparison_key"]),
            )
            for board in boards[:limit]
        ],
        numbers=("runs", "authors"),
    )


def place(run: Record) -> str:
    """A run's rank in its comparison group, in one sentence."""
    if run["rank"] is None:
        return "not ranked"
    tied = ", tied" if run["tied"] else ""
    runs, authors = counted(run["cohort_runs"], "run"), counted(run["cohort_authors"], "author")
    best, median = (figure(run[f"cohort_{name}_value"], run["primary_unit"]) for name in ("best", "median"))
    return (
        f"rank {run['rank']} of {runs}, {authors}{tied}; {ratio(run['gap_to_best'])} the best ({best}), median {median}"
    )


def correctness(status: str) -> str:
    """What is known of a result's correctness: no more than the source says."""
    stated = f"{status} by the source" if status in ("passed", "revoked") else f"not passed ({status}), says the source"
    return f"{stated}; policy not published"


def artifacts(record: Record) -> str:
    """The submission's source text, or that there is none."""
    if record["source_digest"] is None:
        return "none"
    kept = "text kept" if record["source_text_stored"] else "text not kept"
    return f"{record['file_name'] or 'source text'}, {record['source_bytes']} bytes, {kept}, {record['source_digest']}"


def short(run: Record) -> str:
    """What to call a run by: the first digits of its digest, or its id where it has no document."""
    return short_digest(run["run_digest"]) if run["run_digest"] else str(run["run_id"])


def short_digest(digest: str) -> str:
    """The first digits of a digest, enough to ask for it by."""
    return digest.removeprefix("sha256:")[:12]


def tensor(argument: Record) -> str:
    """A tensor's or scalar's type and shape."""
    stated = argument.get("tensor") or argument.get("scalar") or argument
    shape = stated.get("shape")
    return f"{stated['dtype']} [{', '.join(map(str, shape))}]" if shape is not None else f"{stated['dtype']} scalar"


def _run_title(run: Record) -> str:
    case = f"case {run['case_index']}" if run["case_index"] is not None else run["workload_kind"]
    return " · ".join(filter(None, (run["problem_title"] or run["problem"], case, run["gpu"], run["project_name"])))


def _exactly(run: Record) -> str:
    return f" ({exact(run['primary_value'])} {run['primary_unit']})" if run["primary_value"] is not None else ""


def _rank(row: Record) -> str:
    return f"{row['rank']} of {row['cohort_runs']}" if row["rank"] is not None else "–"


def _project(record: Record) -> list[tuple[str, Any]]:
    name = record["project_name"]
    note = "" if record["author_stable"] or name is None else ", an id that holds in one export only"
    return [
        ("Project", f"{name} ({record['project_slug']}){note}" if name is not None else "the source names no author"),
        ("Author", record["author_key"]),
        ("Revision", record["revision"]),
        ("Submission", record["submission_key"]),
    ]


def _source(record: Record) -> list[tuple[str, Any]]:
    return [
        ("Source", f"{record['source_name']} ({record['source']})"),
        ("Address", record["source_url"]),
        ("Licence", record["source_license"]),
        ("Attribution", record["source_attribution"]),
        ("Terms", record["source_terms"]),
    ]


def _axis(axis: Record) -> str:
    return " ".join(str(axis[name]) for name in ("role", "value", "expression") if name in axis)


def _some(count: int, name: str, limit: int | None = SHOWN) -> str:
    rest = "" if limit is None or count <= limit else f", the first {limit}; --json has all"
    return counted(count, name) + rest
