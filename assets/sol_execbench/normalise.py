"""Saved answers of SOL-ExecBench as tables of the contract, one kernel and one page at a time.

The order in which answers are given never matters: they are read by name, and of several copies of one row the first
by the digest of its content is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from assets.sol_execbench.definitions import Kernel, read_kernel
from assets.sol_execbench.leaderboards import read_leaderboards
from assets.sol_execbench.ledger import Columns, Ledger, Place
from assets.sol_execbench.read import Answer, Rejected
from assets.sol_execbench.results import result_columns, result_row, submission_columns, submission_row, tables_of
from assets.sol_execbench.submissions import Note, integer_id, read_submission
from warehouse.contracts import TABLES

# Of this reader: another one makes other rows of the same answers.
VERSION = "sol-execbench/1"

_WORKLOAD_FIELDS = {"axes", "baseline_latency_ms", "sol_ms", "uuid", "inputs", "tolerance"}

# Listed kernels by id: the listing's locator and the kernel's row there.
_Listed = Mapping[int, tuple[str, dict[str, Any]]]


def normalise(answers: Iterable[Answer], fetched_at: datetime, revision: str | None) -> dict[str, pa.Table]:
    """The tables that SOL-ExecBench's answers make.

    Args:
        answers: listing, definitions, pages of submissions and leaderboards in any order; tables are made of the
            first three, a leaderboard's form is looked at, and others are recorded, not read.
        fetched_at: when they were fetched, for `source_files` and `drift`.
        revision: upstream's revision, where it has one.

    Returns:
        Arrow tables of the contract by name: problems, cases, submissions, authors, implementations, protocols,
        environments, rejects, drift, source_files, and results with the schema of `contracts.RESULTS`.

    Raises:
        UnreadableAnswer: where an answer has no rows that one could read, or a leaderboard is not JSON.
    """
    distinct = {(answer.locator, answer.content_digest): answer for answer in answers}
    by_kind: dict[str, list[Answer]] = defaultdict(list)
    for key in sorted(distinct):
        by_kind[distinct[key].kind].append(distinct[key])
    ledger = Ledger([distinct[key] for key in sorted(distinct)], fetched_at, revision, VERSION)
    for answer in by_kind["unknown"]:
        ledger.note(answer.locator, "data", "added", "an answer of a kind that nobody reads")
    for answer in by_kind["leaderboard"]:
        read_leaderboards(answer, partial(ledger.note, answer.locator))
    listed = _listing(ledger, by_kind["listing"])
    kernels = _definitions(ledger, by_kind["definition"], listed)
    tables = _submissions(ledger, by_kind["submissions"], kernels, listed)
    problems, cases = Columns(TABLES["problems"]), Columns(TABLES["cases"])
    for kernel in kernels.values():
        problems.append(kernel.problem)
        for case in kernel.cases:
            cases.append(case)
    return {"problems": problems.table(), "cases": cases.table(), **tables, **ledger.tables()}


def _listing(ledger: Ledger, answers: list[Answer]) -> _Listed:
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


def _definitions(ledger: Ledger, answers: list[Answer], listed: _Listed) -> dict[int, Kernel]:
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
        _compare_with_listing(ledger, place.answer.locator, kernel, listed)
    for kernel_id in listed.keys() - defined:
        detail = f"kernel {kernel_id} is listed, but its definition is not there"
        ledger.note(listed[kernel_id][0], "definition", "missing", detail, each=True)
    return kernels


def _compare_with_listing(ledger: Ledger, locator: str, kernel: Kernel, listed: _Listed) -> None:
    if listed and kernel.id not in listed:
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
    ledger: Ledger, answers: list[Answer], kernels: Mapping[int, Kernel], listed: _Listed
) -> dict[str, pa.Table]:
    """The tables that pages of submissions make."""
    results, submissions = result_columns(), submission_columns()
    places: list[Place] = []
    copies: dict[int, list[Place]] = defaultdict(list)
    pages: dict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        pages[answer.kernel_id].append(answer)
    for asked, answers_of_kernel in pages.items():
        total, obtained = 0, 0
        ids: set[int] = set()
        for answer in answers_of_kernel:
            note = partial(ledger.note, answer.locator)
            found = ledger.read(answer)
            total = max(total, _count(found.total, "total", note))
            obtained += len(found.rows)
            for place, row in ledger.sound(answer, found):
                try:
                    submission_id = integer_id(row.get("id"), "id", note)
                    # A page that moved while it was walked shows a row twice: it was obtained once.
                    obtained -= submission_id in ids
                    ids.add(submission_id)
                    submission = read_submission(row, submission_id, note)
                    kernel = _kernel_of(row, asked, kernels, note)
                except Rejected as reason:
                    ledger.reject(place, reason, row)
                    continue
                copies[submission_id].append(place)
                places.append(place)
                results.append(result_row(submission, kernel, place))
                submissions.append(submission_row(submission, kernel))
        if total > obtained:
            detail = f"{total} reported, {obtained} obtained"
            ledger.note(answers_of_kernel[0].locator, "total", "incomplete", detail, each=True)
    for kernel_id, (locator, row) in listed.items():
        count = _count(row.get("submission_count"), "submission_count", partial(ledger.note, locator))
        if count > 0 and kernel_id not in pages:
            detail = f"{count} reported by the listing, 0 obtained"
            ledger.note(f"submissions/{kernel_id}.json", "total", "incomplete", detail, each=True)
    kept = {ledger.first(f"submission {submission_id}", same) for submission_id, same in copies.items()}
    keep = pa.array([place in kept for place in places], pa.bool_())
    return tables_of(results.table().filter(keep), submissions.table().filter(keep), kernels)


def _count(value: Any, field: str, note: Note) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is not None:
        note(field, "retyped", "a count that is no integer counts as absent")
    return 0


def _kernel_of(row: Mapping[str, Any], asked: int, kernels: Mapping[int, Kernel], note: Note) -> Kernel:
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
    if kernel_id not in kernels:
        raise Rejected("NO_PROBLEM", f"kernel {kernel_id} has no definition that holds")
    if row.get("kernel_name") not in (None, kernels[kernel_id].name):
        note("kernel_name", "conflict", "a submission names its kernel otherwise than the definition does")
    return kernels[kernel_id]
