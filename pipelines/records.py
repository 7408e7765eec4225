"""What a snapshot says of runs, submissions, problems and boards, as plain data: columns of the published tables.

JSON columns are parsed; all else is as DuckDB gives it. The statements are those below `sql/queries`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import duckdb

from warehouse.contracts import TABLES
from warehouse.errors import KernelmartError
from warehouse.statements import statement

Record = dict[str, Any]

CANDIDATES = 20
_JSON_COLUMNS = {
    column.name for table in TABLES.values() for column in table.columns if column.description.startswith("JSON: ")
} | {"environment_software"}
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{4,64})", re.ASCII)
_SUBMISSION = re.compile(r"submission/([0-9]{1,18})", re.ASCII)
# Parts of a comparison key, by the columns of `run_record` that hold them.
_KEY_PARTS = {
    "problem": ("problem_digest",),
    "workload": ("workload_digest",),
    "protocol": ("protocol_digest",),
    "environment": ("environment_digest",),
    "correctness": ("correctness_key",),
    "metric": ("primary_metric", "primary_statistic", "primary_unit"),
}


class NotFoundError(KernelmartError):
    """Nothing in the snapshot goes by the name."""


class AmbiguousError(KernelmartError):
    """Several things go by the name; `candidates` has the first of them."""

    def __init__(self, message: str, candidates: Sequence[Match]) -> None:
        super().__init__(message)
        self.candidates = candidates


@dataclass(frozen=True)
class Match:
    """Something that goes by a name: `kind` is run, submission, problem, board, implementation, workload, protocol,
    environment or text, `id` its key in its table (for a problem its name beside the source)."""

    kind: str
    id: str
    digest: str | None
    source: str | None
    detail: str | None


def find(connection: duckdb.DuckDBPyConnection, what: str, kinds: Sequence[str] = ()) -> list[Match]:
    """All that goes by an id, a name, or a digest or its first digits (four at least); all of one kind.

    Several are given only where they are one to the reader: submissions with one number, problems with one digest.

    Args:
        connection: an open snapshot.
        what: the name.
        kinds: kinds to look among; all by default.

    Raises:
        NotFoundError: where nothing does; names close ones.
        AmbiguousError: where several do.
    """
    number = _SUBMISSION.fullmatch(what)
    named = rows(connection, "named", what=what, number=int(number[1]) if number else None)
    found = [row for row in named if not kinds or row["kind"] in kinds]
    found = [row for row in found if row["exact"]] or found
    if not found and (digits := _DIGEST.fullmatch(what)):
        first, last = f"sha256:{digits[1]:0<64}", f"sha256:{digits[1]:f<64}"
        limit = None if kinds else CANDIDATES + 1
        listed = rows(connection, "digests", first=first, last=last, limit=limit)
        found = [row for row in listed if not kinds or row["kind"] in kinds]
    matches = [Match(*(row[name] for name in ("kind", "id", "digest", "source", "detail"))) for row in found]
    if not matches:
        raise NotFoundError(_nothing(connection, what, kinds))
    if len(matches) > 1 and not _one_to_the_reader(matches):
        count = f"more than {CANDIDATES}" if len(matches) > CANDIDATES else str(len(matches))
        raise AmbiguousError(f"{what} may be {count} things; give more of its id or digest", matches[:CANDIDATES])
    return matches


def find_run(connection: duckdb.DuckDBPyConnection, what: str) -> str:
    """Id of the one run that goes by an id or digest, or that is all there is of a submission.

    Raises:
        NotFoundError: where there is none.
        AmbiguousError: where there are several.
    """
    with suppress(NotFoundError):
        return find(connection, what, ("run",))[0].id
    submissions = find(connection, what, ("run", "submission"))
    found = [
        Match("run", row["run_id"], row["run_digest"], match.source, match.detail)
        for match in submissions
        for row in rows(connection, "runs_of_submission", submission_key=match.id)
    ]
    if len(found) == 1:
        return found[0].id
    if not found:
        raise NotFoundError(f"{what} has no run")
    raise AmbiguousError(f"{what} has {len(found)} runs; name one of them", found[:CANDIDATES])


def run(connection: duckdb.DuckDBPyConnection, run_id: str) -> Record:
    """A row of `run_record` with the run's `measurements`.

    Raises:
        NotFoundError: where there is no such run.
    """
    found = rows(connection, "run", run_id=run_id)
    if not found:
        raise NotFoundError(f"there is no run {run_id}")
    return {"kind": "run", **found[0], "measurements": rows(connection, "measurements", run_id=run_id)}


def manifest(connection: duckdb.DuckDBPyConnection, run_id: str) -> Record:
    """The run's document, its protocol's and its environment's, each with the names shown with it.

    Raises:
        NotFoundError: where the run has no document.
    """
    found = rows(connection, "manifest", run_id=run_id)
    if not found:
        reasons = ", ".join(run(connection, run_id)["ineligible_reasons"])
        raise NotFoundError(f"{run_id} has no document ({reasons}); show it without --manifest")
    names = _names(found[0])
    return {
        kind: {
            "apiVersion": document["apiVersion"],
            "kind": document["kind"],
            "metadata": names[kind],
            "spec": document["spec"],
        }
        for kind, document in ((kind, json.loads(found[0][kind])) for kind in ("run", "protocol", "environment"))
    }


def submission(connection: duckdb.DuckDBPyConnection, submission_key: str) -> Record:
    """A submission with its author, its source's terms and all its `runs` with their ranks."""
    record = rows(connection, "submission", submission_key=submission_key)[0]
    return {
        "kind": "submission",
        **record,
        "runs": rows(connection, "runs_of_submission", submission_key=submission_key),
    }


def problem(connection: duckdb.DuckDBPyConnection, source: str, name: str) -> Record:
    """A problem with its `cases`, its `boards`, and the reasons that keep runs out of its ranks."""
    key = {"source": source, "problem": name}
    return {
        "kind": "problem",
        **rows(connection, "problem", **key)[0],
        "cases": rows(connection, "cases_of_problem", **key),
        "boards": boards(connection, **key),
        "ineligible": rows(connection, "ineligible_of_problem", **key),
    }


def document(connection: duckdb.DuckDBPyConnection, kind: str, digest: str) -> Record:
    """An implementation, workload, protocol, environment or source text, with the runs or boards that it is in."""
    record = {"kind": kind, **rows(connection, f"document_{kind}", digest=digest)[0]}
    if kind == "implementation":
        record["runs"] = rows(connection, "runs_of_implementation", digest=digest)
    elif kind != "text":
        record["boards"] = boards(connection, digest=digest)
    return record


def boards(
    connection: duckdb.DuckDBPyConnection,
    *,
    source: str | None = None,
    problem: str | None = None,
    digest: str | None = None,
) -> list[Record]:
    """Cohorts of a problem, or those in whose comparison key a digest takes part (or whose key it is)."""
    return rows(connection, "boards", source=source, problem=problem, digest=digest)


def narrow(found: Sequence[Record], gpu: str | None, case: str | None) -> list[Record]:
    """Boards on a GPU and of a case.

    Args:
        found: boards of `boards`.
        gpu: a label or product, in any case of letters; where none is just that, a part of one.
        case: the case's number on its board, or its workload digest or the first digits of that.
    """
    chosen = list(found)
    if case is not None:
        digits = case.removeprefix("sha256:")
        chosen = [
            board
            for board in chosen
            if case in map(str, board["case_indices"])
            or (len(digits) >= 4 and board["workload_digest"].startswith(f"sha256:{digits}"))
        ]
    if gpu is None:
        return chosen
    wanted = gpu.lower()
    exactly = [board for board in chosen if wanted in _labels(board)]
    return exactly or [board for board in chosen if any(wanted in label for label in _labels(board))]


def places(connection: duckdb.DuckDBPyConnection, key: str, *, every_run: bool, limit: int | None) -> list[Record]:
    """Places of a cohort, best first: each author's best, or every run."""
    return rows(connection, "board_rows", comparison_key=key, every_run=every_run, limit=limit)


def history(connection: duckdb.DuckDBPyConnection, key: str, as_of: datetime | None) -> list[Record]:
    """The falls of a cohort's best up to an instant, oldest first."""
    return rows(connection, "history", comparison_key=key, as_of=as_of)


def go_back(connection: duckdb.DuckDBPyConnection, key: str, as_of: datetime) -> None:
    """Make the connection see one cohort as it stood at an instant: runs observed by then, ranked anew."""
    from assets.ranks import rank

    policy = snapshot(connection)["ranking_policy"]
    connection.execute(statement("queries/runs_as_of"), {"comparison_key": key, "as_of": as_of})
    # The connection's own tables hide those of the snapshot.
    for name, table in rank(connection, policy).items():
        connection.register(name, table)


def snapshot(connection: duckdb.DuckDBPyConnection) -> Record:
    """The row of the table `snapshot`."""
    return rows(connection, "snapshot")[0]


def differing_parts(first: Record, second: Record) -> list[str]:
    """Parts of the comparison key in which two runs differ."""
    return [
        part
        for part, columns in _KEY_PARTS.items()
        if [first[name] for name in columns] != [second[name] for name in columns]
    ]


def close_names(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """Names of problems that are like another name, closest first."""
    names = [row["name"] for row in rows(connection, "problem_names")]
    inside = [known for known in names if len(name) > 2 and name.lower() in known.lower()]
    return list(dict.fromkeys([*get_close_matches(name, names, 5), *inside]))[:5]


def rows(connection: duckdb.DuckDBPyConnection, name: str, /, **parameters: Any) -> list[Record]:
    """Rows of a statement below `sql/queries`."""
    cursor = connection.execute(statement(f"queries/{name}"), parameters or None)
    columns = [column[0] for column in cursor.description or ()]
    return [
        {column: _parsed(column, value) for column, value in zip(columns, row, strict=True)}
        for row in cursor.fetchall()
    ]


def _labels(board: Record) -> list[str]:
    return [label.lower() for label in (board["gpu"], *board["runners"]) if label]


def _parsed(column: str, value: Any) -> Any:
    return json.loads(value) if column in _JSON_COLUMNS and isinstance(value, str) else value


def _one_to_the_reader(matches: Sequence[Match]) -> bool:
    kinds = {match.kind for match in matches}
    return kinds == {"submission"} or (kinds == {"problem"} and len({match.digest for match in matches}) == 1)


def _nothing(connection: duckdb.DuckDBPyConnection, what: str, kinds: Sequence[str]) -> str:
    if kinds and "problem" not in kinds:
        return f"there is no {' or '.join(kinds)} {what}; give its id, its digest or at least four digits of that"
    if close := close_names(connection, what):
        return f"there is no {what}; close to it {'is' if len(close) == 1 else 'are'} {', '.join(close)}"
    return (
        f"there is no {what}; give a run's id, a digest or at least its first four digits, submission/<number> or a "
        "problem; kernelmart sql 'from problems' lists the problems"
    )


def _names(row: Record) -> dict[str, Record]:
    """Names and titles of a run's three documents, as its source's room makes them."""
    # The rooms take long to import, and nothing else here needs them.
    from assets import naming

    return {
        "run": naming.run_metadata(row),
        "protocol": naming.protocol_metadata(row),
        "environment": naming.environment_metadata(row),
    }
