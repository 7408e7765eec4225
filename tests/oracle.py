"""The rules of identities, keys and ranks once more, row by row in plain Python: slow and obvious.

The tests hold the product against this module. So it shares no code with the product, makes canonical JSON
through ``rfc8785`` and nothing else, and takes the facts of boards as a parameter. This file has the rules
that both sources share, and the ranks; ``oracle_kernelbot`` (its files: ``oracle_kernelbot_files``) and
``oracle_sol`` have those of one source each, ``oracle_tables`` the rows that they make.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import rfc8785

Json = Any

REGISTRY = "kernelindex.dev/v1alpha1"
LOCAL = "kernelmart/v1"
LARGEST = 2**53 - 1
POLICY = "ranking-v1"
LATENCY = ("latency", "mean", "ns")


class Rejected(Exception):  # noqa: N818
    """A row, case or kernel that cannot be normalised: reason code and detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


# --- canonical forms ------------------------------------------------------------------------------------------


def canonical(value: Json) -> str:
    """RFC 8785 text. Raises rfc8785.CanonicalizationError where a number or text has no canonical form."""
    return rfc8785.dumps(value).decode()


def sha256(content: bytes | str) -> str:
    data = content.encode() if isinstance(content, str) else content
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest(value: Json) -> str:
    return sha256(canonical(value))


def document(kind: str, spec: Json, api_version: str = REGISTRY) -> Json:
    return {"apiVersion": api_version, "kind": kind, "spec": spec}


def document_digest(doc: Json) -> str:
    return digest({part: doc[part] for part in ("apiVersion", "kind", "spec")})


def present(value: Json) -> Json:
    """The same value without absent fields: null, and numbers that have no canonical form."""
    if isinstance(value, dict):
        return {name: present(part) for name, part in value.items() if present(part) is not None}
    if isinstance(value, list):
        return [present(part) for part in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return value


def kebab(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:100].strip("-")


def number(value: Json) -> int | float | None:
    """A number of the source, also where it is written as text; None where it is none or has no canonical form."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value.strip()):
        value = float(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def rounded(value: int | float | None) -> int | None:
    """Integer nanoseconds, half up in doubles; None where the integer has no canonical form."""
    if value is None:
        return None
    result = math.floor(float(value) + 0.5)
    return result if abs(result) <= LARGEST else None


def positive(value: int | float) -> bool:
    return value > 0


def not_negative(value: int | float) -> bool:
    return value >= 0


def positive_integer(value: int | float) -> bool:
    return value > 0 and value == int(value)


def figures(raw: Json, rules: Mapping[str, Callable[[int | float], bool]]) -> tuple[dict[str, int | float], list[str]]:
    """The figures that count, and a flag for each that was given and does not."""
    counted: dict[str, int | float] = {}
    flags: list[str] = []
    for name, counts in rules.items():
        given = raw.get(name)
        if given is None or given == "":
            continue
        value = number(given)
        if value is None or (counts is positive_integer and value > LARGEST):
            flags.append(f"NOT_FINITE:{name}")
        elif not counts(value):
            flags.append(f"OUT_OF_RANGE:{name}")
        else:
            counted[name] = int(value) if counts is positive_integer else value
    return counted, flags


def moment(value: Json) -> datetime | None:
    """A time of the source; without a zone it is UTC."""
    if value is None:
        return None
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
        return (parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed).astimezone(UTC)
    except (ValueError, OverflowError, AttributeError, TypeError) as error:
        raise Rejected("BAD_TIME", repr(value)) from error


def instant(value: datetime | None) -> str | None:
    """Three decimals, cut off."""
    return None if value is None else value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def integer_id(value: Json) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise Rejected("BAD_ID", repr(value))
    return value


def text_of(value: Json) -> str | None:
    """An id or a label as text; null, empty and not-a-number are absent."""
    if isinstance(value, float):
        return None if math.isnan(value) else str(int(value)) if value.is_integer() else str(value)
    return None if value is None or value == "" else str(value)


# --- axes, shapes, expressions --------------------------------------------------------------------------------


def evaluate(expression: str, value_of: Callable[[str], int]) -> int:
    """The value of an expression of integers, names, ``+ - * % //`` and parentheses."""
    tokens = re.findall(r"[0-9]+|[^\W\d]\w*|//|\S", expression)
    tokens.append("")

    def factor() -> int:
        symbol = tokens.pop(0)
        if symbol == "-":
            return -factor()
        if symbol == "(":
            value = total()
            if tokens.pop(0) != ")":
                raise Rejected("BAD_EXPRESSION", expression)
            return value
        if re.fullmatch(r"[0-9]+", symbol):
            return int(symbol)
        if re.fullmatch(r"[^\W\d]\w*", symbol):
            return value_of(symbol)
        raise Rejected("BAD_EXPRESSION", expression)

    def product() -> int:
        value = factor()
        while tokens[0] in ("*", "//", "%"):
            operator, right = tokens.pop(0), factor()
            value = value * right if operator == "*" else value // right if operator == "//" else value % right
        return value

    def total() -> int:
        value = product()
        while tokens[0] in ("+", "-"):
            value = value + product() if tokens.pop(0) == "+" else value - product()
        return value

    try:
        result = total()
    except (ZeroDivisionError, RecursionError, IndexError, ValueError) as error:
        raise Rejected("BAD_EXPRESSION", expression) from error
    if tokens != [""]:
        raise Rejected("BAD_EXPRESSION", expression)
    return result


def in_range(value: int, what: str) -> int:
    if abs(value) > LARGEST:
        raise Rejected("NUMBER_OUT_OF_RANGE", what)
    return value


def bind(symbol: str, axes: Json, bindings: dict[str, int], waiting: tuple[str, ...] = ()) -> int:
    """The value of a symbol: the case's own, else the constant, else derived, whatever the order of declaration."""
    if symbol in bindings:
        return in_range(bindings[symbol], symbol)
    declared = axes.get(symbol, {"role": "variable"})
    if declared["role"] == "constant":
        return in_range(declared["value"], symbol)
    if declared["role"] == "derived" and symbol not in waiting:
        value = evaluate(declared["expression"], lambda name: bind(name, axes, bindings, (*waiting, symbol)))
        return in_range(value, symbol)
    raise Rejected("UNBOUND_AXIS", symbol)


def bound_shape(shape: list[int | str], axes: Json, bindings: dict[str, int]) -> list[int]:
    return [bind(entry, axes, bindings) if isinstance(entry, str) else in_range(entry, "shape") for entry in shape]


def input_dtypes(inputs: list[Json]) -> list[str]:
    return sorted({(entry.get("tensor") or entry["scalar"])["dtype"] for entry in inputs})


# --- documents that both sources have -------------------------------------------------------------------------


@dataclass(frozen=True)
class Hardware:
    vendor: str
    product: str
    architecture: str


def implementation(
    submission_id: int, problem_digest: str, language: str, machine: Hardware, dtypes: list[str] | None, source: Json
) -> Json:
    """ImplementationRevision; ``dtypes`` None on boards without facts, ``source`` None where it is not known."""
    return document(
        "ImplementationRevision",
        present(
            {
                "projectRevision": {"version": f"submission-{submission_id}"},
                "operation": {"specDigest": problem_digest},
                "callable": {"language": language},
                "support": {
                    "hardwareArchitectures": [machine.architecture],
                    "productsTested": [machine.product],
                    "dtypes": dtypes,
                },
                "licensing": {},
                "source": source,
            }
        ),
    )


def correctness_key(correctness: Json) -> str:
    return digest({"correctness": correctness})


def comparison_key(
    operation: str, workload: str, protocol: str, environment: str, correctness: str, metric: tuple[str, str, str]
) -> str:
    return digest(
        {
            "v": 1,
            "operation": operation,
            "workload": workload,
            "protocol": protocol,
            "environment": environment,
            "correctness": correctness,
            "metric": ":".join(metric),
        }
    )


def run_document(digests: dict[str, str], measured: Json, native: Json, observed_at: str | None) -> Json:
    """BenchmarkRun. ``digests``: implementation, workload, protocol, environment."""
    spec = {f"{name}Digest": value for name, value in digests.items()}
    return document(
        "BenchmarkRun",
        present({**spec, "status": "passed", **measured, "sourceNative": native, "observedAt": observed_at}),
    )


# --- ranks ----------------------------------------------------------------------------------------------------


def dense_ranks(values: Iterable[int | float]) -> dict[int | float, int]:
    return {value: place for place, value in enumerate(sorted(set(values)), start=1)}


def best_first(run: Json) -> tuple[Json, ...]:
    """The order in which an author's best run, or a cohort's, is the first one."""
    observed = run["observed_at"]
    return (run["primary_value"], observed is None, observed or "", run["submission_id"], run["run_id"])


def ranks(runs: list[Json]) -> list[Json]:
    """Policy ranking-v1 over rows of ``runs``, one row per eligible run."""
    cohorts: dict[str, list[Json]] = {}
    for run in runs:
        if run["eligible"]:
            cohorts.setdefault(run["comparison_key"], []).append(run)
    rows: list[Json] = []
    for key, cohort in cohorts.items():
        bests: dict[str, Json] = {}
        for run in sorted(cohort, key=best_first):
            if run["author_key"] is not None:
                bests.setdefault(run["author_key"], run)
        best_ids = {run["run_id"] for run in bests.values()}
        places = dense_ranks(run["primary_value"] for run in cohort)
        author_places = dense_ranks(run["primary_value"] for run in bests.values())
        values = [run["primary_value"] for run in cohort]
        for run in cohort:
            value, is_best = run["primary_value"], run["run_id"] in best_ids
            rows.append(
                {
                    "policy": POLICY,
                    "run_id": run["run_id"],
                    "comparison_key": key,
                    "rank": places[value],
                    "author_rank": author_places[value] if is_best else None,
                    "author_best": is_best,
                    "tied": values.count(value) > 1,
                    "gap_to_best": value / min(values),
                    "percentile": (places[value] - 1) / (len(places) - 1) if len(places) > 1 else None,
                    "cohort_runs": len(cohort),
                    "cohort_authors": len(bests),
                }
            )
    return rows


def read(directory: Path, facts: Json, code: bool = False) -> dict[str, Json]:
    """Every table that a folder laid out as saved dumps must give.

    ``facts`` is ``{"boards": [...]}``. ``code`` says whether the sources of submissions are read, too. Lists of
    rows, but ``files`` (locator to counts of read, kept, duplicate, rejected) and ``run_documents`` (run id to
    run, protocol and environment with their metadata) are objects.
    """
    # Here, and not above: the others build on this module.
    from tests import oracle_kernelbot, oracle_sol, oracle_tables

    corpus = oracle_tables.Corpus()
    if (directory / "kernelbot").is_dir():
        oracle_kernelbot.read(directory / "kernelbot", facts, code, corpus)
    if (directory / "sol_execbench").is_dir():
        oracle_sol.read(directory / "sol_execbench", corpus)
    tables = dict(vars(corpus))
    for name in ("implementations", "protocols", "environments"):
        tables[name] = list(tables[name].values())
    return tables | {"ranks": ranks(corpus.runs)}
