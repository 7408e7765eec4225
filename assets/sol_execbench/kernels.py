"""The reading of SOL-ExecBench's answers: the listing, and what some kernels' answers make on their own.

The order in which answers are given never matters: they are read by name, and of several copies of one row the first
by the digest of its content is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from assets.sol_execbench.definitions import Kernel, read_kernel
from assets.sol_execbench.leaderboards import read_leaderboards
from assets.sol_execbench.ledger import Ledger, Place
from assets.sol_execbench.read import Answer, Kind, Rejected, content
from assets.sol_execbench.results import implementation_row, result_row, submission_row
from assets.sol_execbench.submissions import Note, Submission, integer_id, read_submission
from assets.sol_execbench.tables import Tables

_WORKLOAD_FIELDS = {"axes", "baseline_latency_ms", "sol_ms", "uuid", "inputs", "tolerance"}

# Listed kernels by id: the listing's locator and the kernel's row there.
Listed = Mapping[int, tuple[str, dict[str, Any]]]


@dataclass
class Mentions:
    """What answers name: kernels that have one of these in common cannot be read without each other."""

    kernels: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    submissions: set[int] = field(default_factory=set)


def read_listing(ledger: Ledger, answers: Iterable[Answer]) -> Listed:
    """The listed kernels; without any answer that is told.

    Raises:
        UnreadableAnswer: where an answer has no rows that one could read.
    """
    answers = list(answers)
    copies: dict[int, list[Place]] = defaultdict(list)
    rows: dict[Place, dict[str, Any]] = {}
    for answer in answers:
        for place, row in ledger.sound(answer, ledger.read(answer)):
            try:
                copies[integer_id(row.get("id"), "id", partial(ledger.note, answer.locator))].append(place)
                rows[place] = row
            except Rejected as reason:
                ledger.reject(place, reason, row)
    if not answers:
        ledger.note("kernels.json", "kernels", "missing", "there is no listing of kernels")
    listed = {}
    for kernel_id, places in copies.items():
        kept = ledger.first(f"kernel {kernel_id}", places)
        listed[kernel_id] = (kept.answer.locator, rows[kept])
    return listed


def read_kernels(ledger: Ledger, tables: Tables, answers: Iterable[Answer], listed: Listed, *, whole: bool) -> Mentions:
    """Read the answers about some kernels, and append the rows that they make.

    Args:
        ledger: takes account of them.
        tables: takes the rows of problems, cases, submissions, implementations and results.
        answers: definitions, pages of submissions and leaderboards; others are recorded, not read.
        listed: what the listing says of these kernels.
        whole: whether there is a listing with any kernel.

    Returns:
        What the answers name, which other kernels' answers may name as well.

    Raises:
        UnreadableAnswer: where an answer has no rows that one could read, or a leaderboard is not JSON.
    """
    by_kind: dict[Kind, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_kind[answer.kind].append(answer)
    for answer in by_kind["unknown"]:
        ledger.note(answer.locator, "data", "added", "an answer of a kind that nobody reads")
    for answer in by_kind["leaderboard"]:
        read_leaderboards(answer, partial(ledger.note, answer.locator))
    mentions = Mentions()
    kernels = _definitions(ledger, by_kind["definition"], listed, mentions, whole=whole)
    for kernel in kernels.values():
        tables.append("problems", kernel.problem)
        for case in kernel.cases:
            tables.append("cases", case)
    _submissions(ledger, tables, by_kind["submissions"], kernels, listed, mentions)
    return mentions


def _definitions(
    ledger: Ledger, answers: list[Answer], listed: Listed, mentions: Mentions, *, whole: bool
) -> dict[int, Kernel]:
    """The kernels whose definition holds, by id."""
    copies: dict[int, list[Place]] = defaultdict(list)
    found: dict[Place, Kernel] = {}
    defined: set[int] = set()
    for answer in answers:
        note = partial(ledger.note, answer.locator)
        asked = answer.kernel_id
        defined.add(asked)
        for place, row in ledger.sound(answer, ledger.read(answer)):
            try:
                kernel_id = asked if row.get("id") is None else integer_id(row["id"], "id", note)
                if kernel_id != asked:
                    note("id", "conflict", f"the definition asked for as {asked} says it is kernel {kernel_id}")
                defined.add(kernel_id)
                found[place] = read_kernel(row, kernel_id)
                copies[kernel_id].append(place)
                _tell_definition(row, note)
            except Rejected as reason:
                ledger.reject(place, reason, row)
    kernels: dict[int, Kernel] = {}
    owners: dict[str, int] = {}
    for kernel_id in sorted(copies):
        place = ledger.first(f"kernel {kernel_id}", copies[kernel_id])
        kernel = found[place]
        owner = owners.setdefault(kernel.name, kernel_id)
        if owner == kernel_id:
            kernels[kernel_id] = kernel
        else:
            taken = Rejected("NAME_TAKEN", f"kernel {owner} has the name {kernel.name!r} already")
            ledger.reject(place, taken, ledger.row(place))
        if whole:
            _compare_with_listing(ledger, place.answer.locator, kernel, listed)
    for kernel_id in listed.keys() - defined:
        detail = f"kernel {kernel_id} is listed, but its definition is not there"
        ledger.note(listed[kernel_id][0], "definition", "missing", detail, each=True)
    mentions.kernels |= defined
    mentions.names |= owners.keys()
    return kernels


def _compare_with_listing(ledger: Ledger, locator: str, kernel: Kernel, listed: Listed) -> None:
    if kernel.id not in listed:
        ledger.note(locator, "kernels", "missing", f"kernel {kernel.id} is not in the listing", each=True)
    if kernel.id in listed and listed[kernel.id][1].get("name") not in (None, kernel.name):
        ledger.note(locator, "name", "conflict", f"the listing has another name for kernel {kernel.id}", each=True)


def _tell_definition(row: Mapping[str, Any], note: Note) -> None:
    """Tells what is new or of another form in a definition that holds."""
    if row.get("latency_unit") not in (None, "ms"):
        note("latency_unit", "unknown_value", str(row["latency_unit"]))
    if not isinstance(row.get("sol_is_dummy"), bool | None):
        note("sol_is_dummy", "retyped", "a value that is no boolean counts as yes")
    for workload in row["workloads"]:
        for name in workload.keys() - _WORKLOAD_FIELDS:
            note(f"workloads.{name}", "added", "a new field of a definition's workloads")
        for name in ("baseline_latency_ms", "sol_ms"):
            value = workload.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                note(f"workloads.{name}", "retyped", "a value that is no number counts as absent")


def _submissions(
    ledger: Ledger,
    tables: Tables,
    answers: list[Answer],
    kernels: Mapping[int, Kernel],
    listed: Listed,
    mentions: Mentions,
) -> None:
    """Append the rows that pages of submissions make."""
    found: dict[int, list[tuple[Place, Submission, Kernel]]] = defaultdict(list)
    pages: dict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        pages[answer.kernel_id].append(answer)
    for asked, answers_of_kernel in pages.items():
        total = 0
        # A page that moved while it was walked, or was narrowed by a filter, shows a row again: it was obtained once.
        obtained: set[int | str] = set()
        for answer in answers_of_kernel:
            note = partial(ledger.note, answer.locator)
            page = ledger.read(answer)
            total = max(total, _count(page.total, "total", note))
            without_id = dict(enumerate(row for _, row in page.rows))
            for place, row in ledger.sound(answer, page):
                try:
                    submission_id = integer_id(row.get("id"), "id", note)
                    obtained.add(submission_id)
                    del without_id[place.number]
                    submission = read_submission(row, submission_id, note)
                    kernel = _kernel_of(row, asked, kernels, note, mentions)
                except Rejected as reason:
                    ledger.reject(place, reason, row)
                    continue
                found[submission_id].append((place, submission, kernel))
            obtained.update(map(content, without_id.values()))
        mentions.submissions.update(one for one in obtained if isinstance(one, int))
        if total > len(obtained):
            detail = f"{total} reported, {len(obtained)} obtained"
            ledger.note(answers_of_kernel[0].locator, "total", "incomplete", detail, each=True)
    mentions.kernels |= pages.keys()
    for kernel_id, (locator, row) in listed.items():
        count = _count(row.get("submission_count"), "submission_count", partial(ledger.note, locator))
        if count > 0 and kernel_id not in pages:
            detail = f"{count} reported by the listing, 0 obtained"
            ledger.note(f"submissions/{kernel_id}.json", "total", "incomplete", detail, each=True)
    for submission_id, copies in found.items():
        kept = ledger.first(f"submission {submission_id}", [place for place, _, _ in copies])
        place, submission, kernel = next(copy for copy in copies if copy[0] == kept)
        implementation = implementation_row(submission, kernel)
        if implementation is not None:
            tables.append("implementations", implementation)
        known = None if implementation is None else implementation["implementation_digest"]
        tables.append("results", result_row(submission, kernel, place, known))
        tables.append("submissions", submission_row(submission, kernel))


def _count(value: Any, field: str, note: Note) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is not None:
        note(field, "retyped", "a count that is no integer counts as absent")
    return 0


def _kernel_of(
    row: Mapping[str, Any], asked: int, kernels: Mapping[int, Kernel], note: Note, mentions: Mentions
) -> Kernel:
    """The kernel that a submission names, else the one whose page it stands on.

    Raises:
        Rejected: `NO_PROBLEM`.
    """
    try:
        kernel_id = asked if row.get("kernel_id") is None else integer_id(row["kernel_id"], "kernel_id", note)
    except Rejected as reason:
        raise Rejected("NO_PROBLEM", reason.detail) from reason
    if kernel_id != asked:
        note("kernel_id", "conflict", "a submission of another kernel than the one asked for")
        mentions.kernels.add(kernel_id)
    if kernel_id not in kernels:
        raise Rejected("NO_PROBLEM", f"kernel {kernel_id} has no definition that holds")
    if row.get("kernel_name") not in (None, kernels[kernel_id].name):
        note("kernel_name", "conflict", "a submission names its kernel otherwise than the definition does")
    return kernels[kernel_id]
