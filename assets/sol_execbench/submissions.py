"""One submission of SOL-ExecBench: what its row says, typed, with marks for what does not count."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from assets.sol_execbench.definitions import finite
from assets.sol_execbench.environment import hardware
from assets.sol_execbench.read import Rejected, type_name
from warehouse.identity import MAXIMUM_INTEGER

# note(field, kind, detail): tells the drift.
Note = Callable[[str, str, str], None]

# Figures in the order of their canonical JSON; all but the latency count at 0 and below as well.
METRICS = ("avg_speedup", "fast_1_count", "fast_1_total", "latency_ms", "sol_score")
FLOOR_NS = 100
RANKED_MODE = "release"

_MODES = frozenset({RANKED_MODE, "private"})
_LARGEST_ID = 2**63 - 1
_NANOSECONDS = 1e6
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WAITING = re.compile(r"QUEUED|PENDING|SUBMITTED|RUNNING|PROCESSING")
_FAILURES = (
    ("compile_error", re.compile(r"COMPIL\w*[ _-]?(ERROR|FAIL\w*)")),
    ("runtime_error", re.compile(r"RUN[ _-]?TIME[ _-]?(ERROR|FAIL\w*)")),
    ("timeout", re.compile(r"TIME[ _-]?(D[ _-]?)?OUT([ _-]?ERROR)?")),
    ("incorrect", re.compile(r"INCORRECT([ _-]\w+)?")),
)


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission's facts; `metrics` holds the figures that count, as the source has them (latency in ms)."""

    id: int
    author_name: str | None
    mode: str | None
    upstream_status: str | None
    status: str
    passed: bool
    revoked: bool
    gpu_type: str | None
    worker: str | None
    version: str | None
    file_name: str | None
    submitted_at: datetime | None
    observed_at: datetime | None
    metrics: dict[str, int | float]
    primary_value: float | None
    flags: list[str]


def read_submission(row: Mapping[str, Any], submission_id: int, note: Note) -> Submission:
    """What one row says.

    Args:
        row: an object whose form is sound.
        submission_id: its id.
        note: told of values of another type than usual, and of values that nobody knows.

    Raises:
        Rejected: `BAD_TIME`.
    """
    submitted_at = instant(row.get("submitted_at"), "submitted_at")
    observed_at = instant(row.get("finished_at"), "finished_at") or submitted_at
    flags: list[str] = []
    metrics: dict[str, int | float] = {}
    for field in METRICS:
        value = _figure(row.get(field), field, flags, note)
        if value is not None:
            metrics[field] = value
    if _contradicts(metrics):
        flags.append("SPEEDUP_CONTRADICTION")
    gpu_type = _text(row, "gpu_type", note)
    if gpu_type is not None and not hardware(gpu_type).known:
        note("gpu_type", "unknown_value", gpu_type)
    mode = _text(row, "submission_mode", note)
    if mode is not None and mode not in _MODES:
        note("submission_mode", "unknown_value", mode)
    upstream_status = _text(row, "status", note)
    correct = boolean(row.get("is_correct"), "is_correct", note)
    revoked = boolean(row.get("is_disqualified"), "is_disqualified", note) is True
    return Submission(
        id=submission_id,
        author_name=_text(row, "username", note),
        mode=mode,
        upstream_status=upstream_status,
        status="revoked" if revoked else _status(upstream_status, correct, note),
        passed=upstream_status == "COMPLETED" and correct is True and not revoked,
        revoked=revoked,
        gpu_type=gpu_type,
        worker=_text(row, "worker_id", note),
        version=_text(row, "evaluation_stack_version", note),
        file_name=_text(row, "original_filename", note),
        submitted_at=submitted_at,
        observed_at=observed_at,
        metrics=metrics,
        primary_value=_nanoseconds(metrics.get("latency_ms"), flags),
        flags=flags,
    )


def integer_id(value: Any, field: str, note: Note) -> int:
    """An id: an integer of 64 bits, or the text of one.

    Raises:
        Rejected: `BAD_ID`.
    """
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,19}", value):
        note(field, "retyped", "a text where an integer was")
        value = int(value)
    # JSON does not tell 5 from 5.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST_ID - 1 <= value <= _LARGEST_ID:
        raise Rejected("BAD_ID", f"{field} is no integer of 64 bits: {str(value)[:60]!r}")
    return value


def instant(value: Any, field: str) -> datetime | None:
    """A time in UTC, with microseconds; a time without a zone is UTC.

    Raises:
        Rejected: `BAD_TIME`.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and _INSTANT.fullmatch(value):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Rejected("BAD_TIME", f"{field} cannot be read as a time: {str(value)[:60]!r}")


def boolean(value: Any, field: str, note: Note) -> bool | None:
    """Yes, no or not said; 0, 1 and the words are understood and told as drift."""
    if value is None or isinstance(value, bool):
        return value
    note(field, "retyped", f"a {type_name(value)} where a boolean was")
    return {"true": True, "1": True, "false": False, "0": False}.get(str(value).strip().lower())


def _text(row: Mapping[str, Any], field: str, note: Note) -> str | None:
    """A text, also where it is written as an integer; an empty one says nothing."""
    value = row.get(field)
    if isinstance(value, str):
        return value or None
    if value is not None:
        note(field, "retyped", f"a {type_name(value)} where a text was")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _figure(value: Any, field: str, flags: list[str], note: Note) -> int | float | None:
    """A number, also where it is written as text; one that does not count is marked in `flags`."""
    if type(value) is float and 0 < value < math.inf:
        return value
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        note(field, "retyped", f"a {type_name(value)} where a number was")
        value = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else math.nan
    if finite(value) is None:
        flags.append(f"NOT_FINITE:{field}")
        return None
    if field == "latency_ms" and value <= 0:
        flags.append(f"OUT_OF_RANGE:{field}")
        return None
    return value  # type: ignore[no-any-return]


def _nanoseconds(latency_ms: float | None, flags: list[str]) -> float | None:
    if latency_ms is None:
        return None
    nanoseconds = latency_ms * _NANOSECONDS + 0.5
    # Rounded it is an integer of the run's document, and beyond this range an integer has no canonical form.
    if nanoseconds > MAXIMUM_INTEGER:
        flags.append("NOT_FINITE:latency_ms")
        return None
    return float(math.floor(nanoseconds))


def _contradicts(metrics: Mapping[str, int | float]) -> bool:
    """Whether the cases said to be faster than the baseline and the mean speedup cannot both be true.

    A faster case has a speedup above 1, any case one above 0: the mean exceeds the share of faster cases, and stays
    at or below 1 where no case is faster.
    """
    count, total, mean = metrics.get("fast_1_count"), metrics.get("fast_1_total"), metrics.get("avg_speedup")
    if count is None or total is None or total <= 0:
        return False
    if not 0 <= count <= total:
        return True
    return mean is not None and (mean < count / total or (count == 0 and mean > 1))


def _status(upstream_status: str | None, correct: bool | None, note: Note) -> str:
    if upstream_status == "COMPLETED":
        return {True: "passed", False: "incorrect", None: "unknown"}[correct]
    if upstream_status == "FAILED":
        return "failed"
    word = (upstream_status or "").upper()
    for status, pattern in _FAILURES:
        if pattern.fullmatch(word):
            return status
    if upstream_status is not None and not _WAITING.fullmatch(word):
        note("status", "unknown_value", upstream_status)
    return "unknown"
