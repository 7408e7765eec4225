"""Leaderboards as saved answers show them: no table is made of them, but the standings are compared with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from assets.sol_execbench.definitions import finite
from assets.sol_execbench.environment import hardware
from assets.sol_execbench.read import Answer, Rejected, RepeatedKeys, check_form, parse, type_name
from assets.sol_execbench.submissions import Note, integer_id

SCHEMA = pa.schema(
    [
        ("locator", pa.string()),
        ("kernel_id", pa.int64()),
        ("gpu", pa.string()),
        ("stack_version", pa.string()),
        ("places", pa.list_(pa.struct([("rank", pa.int64()), ("username", pa.string()), ("sol_score", pa.float64())]))),
    ]
)

_ADDRESS = re.compile(r"leaderboards/([0-9]{1,18})\.([^.]+)\.(.+)\.json")
_DRIFT = {"NOT_AN_OBJECT": "retyped", "DUPLICATE_KEYS": "conflict"}


@dataclass(frozen=True)
class ShownPlace:
    """A place on a leaderboard: its rank, whose it is, and the SOL score, where it is stated."""

    rank: int
    username: str | None
    sol_score: float | None


@dataclass(frozen=True)
class Leaderboard:
    """The places of a kernel on one GPU and evaluation stack as the answer at `locator` shows them."""

    locator: str
    kernel_id: int
    gpu: str
    stack_version: str
    places: list[ShownPlace]


def _untold(field: str, kind: str, detail: str) -> None:
    del field, kind, detail


def read_leaderboards(answer: Answer, note: Note = _untold) -> list[Leaderboard]:
    """The leaderboards of an answer: one, or one for each GPU in the older form; none where it has another form.

    Args:
        answer: an answer whose address names kernel, GPU and stack.
        note: told of what cannot be read; the rest of the answer is read all the same.

    Raises:
        UnreadableAnswer: where the answer is not JSON.
    """
    envelope, suspect = parse(answer)
    address = _ADDRESS.fullmatch(answer.locator)
    if not address:
        note("locator", "unknown_value", "the address of a leaderboard does not name kernel, GPU and stack")
        return []
    data = envelope.get("data") if isinstance(envelope, dict) else None
    if isinstance(envelope, RepeatedKeys) or isinstance(data, RepeatedKeys):
        note("data", "conflict", "a leaderboard answer names one key twice")
        return []
    # What would mislead in a name is percent-encoded there.
    kernel_id, own_gpu, stack_version = int(address[1]), unquote(address[2]), unquote(address[3])
    rankings = _rankings(data, own_gpu)
    if not rankings:
        note("rankings", "missing", "a leaderboard answer has no rankings")
    return [
        Leaderboard(answer.locator, kernel_id, gpu, stack_version, list(_places(rows, suspect, note)))
        for gpu, rows in rankings.items()
    ]


def leaderboard_table(leaderboards: Iterable[Leaderboard]) -> pa.Table:
    """Leaderboards as rows with the columns of `SCHEMA`."""
    return pa.Table.from_pylist([asdict(board) for board in leaderboards], schema=SCHEMA)


def _rankings(data: Any, gpu: str) -> dict[str, list[Any]]:
    """Rows by GPU. The older form maps GPU to rows, or to an object that has them."""
    rankings = data.get("rankings", data) if isinstance(data, dict) else None
    if isinstance(rankings, list):
        return {gpu: rankings}
    found: dict[str, list[Any]] = {}
    for name, rows in rankings.items() if isinstance(rankings, dict) else ():
        rows = rows.get("rankings") if isinstance(rows, dict) else rows
        if isinstance(rows, list) and (name == gpu or hardware(name).known):
            found[name] = rows
    return found


def _places(rows: list[Any], suspect: bool, note: Note) -> Iterable[ShownPlace]:
    for row in rows:
        try:
            check_form(row, suspect)
            # Bounds and baselines stand among the rows without a rank.
            if row.get("rank") is None:
                continue
            rank = integer_id(row["rank"], "rankings.rank", note)
        except Rejected as reason:
            note("rankings", _DRIFT.get(reason.reason, "unknown_value"), f"in a row of a leaderboard, {reason.detail}")
            continue
        yield ShownPlace(rank, _username(row, note), _score(row, note))


def _username(row: dict[str, Any], note: Note) -> str | None:
    name = row.get("username")
    if not isinstance(name, str | None):
        note("rankings.username", "retyped", f"a {type_name(name)} where a text was")
        return None
    return name or None


def _score(row: dict[str, Any], note: Note) -> float | None:
    score = row.get("sol_score")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        note("rankings.sol_score", "retyped", f"a {type_name(score)} where a number was")
        return None
    return finite(score)
