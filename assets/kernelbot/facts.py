"""What is known of KernelBot's boards beyond their names: `boards.toml`, validated whenever it is loaded."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from assets.expressions import names_in
from warehouse.identity import digest, document

_FILE = Path(__file__).with_name("boards.toml")

CORRECTNESS = {"comparator": "kernelbot_eval"}

# Boards that the platform has had under these ids, for per-case rows whose id the export's own list lacks.
UNLISTED_BOARDS = {398: "amd-identity", 563: "amd-all2all", 564: "amd-gemm-rs", 565: "amd-ag-gemm", 773: "qr"}


class FactsError(ValueError):
    """`boards.toml` contradicts itself or its digests."""


class Suite(BaseModel):
    """The cases behind a board's aggregate score, in order, as `{externalId, axes}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    statistic: Literal["geomean", "mean", "last", "unspecified"]
    workload_digest: str
    cases: tuple[dict[str, Any], ...]

    @field_validator("cases", mode="before")
    @classmethod
    def _with_ids(cls, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"externalId": case["id"], "axes": case["axes"]} if "id" in case else {"externalId": str(i), "axes": case}
            for i, case in enumerate(cases)
        ]


class Board(BaseModel):
    """Facts of one board; `axes`, `inputs` and `outputs` are in the form of its OperationSpec."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    upstream_id: int | None = None
    slug: str
    title: str
    family: str
    task: str
    scoring: Literal["per_case", "aggregate"]
    ranking_by: Literal["geom", "mean", "last"] | None = None
    tags: tuple[str, ...]
    runners: tuple[str, ...]
    axes: dict[str, dict[str, Any]]
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    suite: Suite | None = None
    problem_digest: str

    @field_validator("axes", mode="before")
    @classmethod
    def _axes_with_roles(cls, axes: dict[str, str | int]) -> dict[str, dict[str, Any]]:
        return {name: _axis(value) for name, value in axes.items()}

    @field_validator("inputs", "outputs", mode="before")
    @classmethod
    def _tensors(cls, lines: list[str]) -> list[dict[str, Any]]:
        return [_tensor(line) for line in lines]

    @property
    def dtypes(self) -> list[str]:
        """Data types of the inputs, sorted, each once."""
        return sorted({argument["tensor"]["dtype"] for argument in self.inputs})

    @property
    def statistic(self) -> str:
        """How the board's aggregate score is made of its cases."""
        return self.suite.statistic if self.suite else "unspecified"

    def operation(self) -> dict[str, Any]:
        """The OperationSpec's spec."""
        return {
            "family": self.family,
            "axes": self.axes,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "semantics": {"mutation": "none", "determinism": "unspecified"},
        }

    def workload_suite(self) -> dict[str, Any]:
        """The WorkloadSuite's spec, of a board that has a suite."""
        if self.suite is None:
            raise FactsError(f"board {self.name} has no suite")
        return {
            "operationSpecDigest": self.problem_digest,
            "cases": list(self.suite.cases),
            "correctness": CORRECTNESS,
            "aggregation": {"metric": "score", "statistic": self.suite.statistic},
        }


@cache
def load_boards() -> Mapping[str, Board]:
    """All boards with facts, by name.

    Raises:
        FactsError: naming the board and what is wrong with it.
    """
    return parse_boards(_FILE.read_text(encoding="utf-8"))


def parse_boards(text: str) -> dict[str, Board]:
    """Boards from TOML text, each checked against its own digests.

    Raises:
        FactsError: naming the board and what is wrong with it.
    """
    boards: dict[str, Board] = {}
    for name, facts in tomllib.loads(text).items():
        try:
            board = Board(name=name, **facts)
            _check(board)
        except FactsError:
            raise
        except (ValidationError, TypeError, KeyError, ValueError) as error:
            raise FactsError(f"board {name}: {error}") from error
        boards[name] = board
    return boards


def facts_revision() -> str:
    """Digest of the facts: a change of any fact is a new revision."""
    return digest(_FILE.read_bytes())


def boards_as_documents() -> list[dict[str, Any]]:
    """The facts in the order and form of the documents: one dict a board, for tools that want no classes."""
    return [
        {
            "leaderboard": board.name,
            **board.model_dump(exclude={"name", "suite"}),
            "semantics": board.operation()["semantics"],
            "suite": board.suite.model_dump() if board.suite else None,
        }
        for board in load_boards().values()
    ]


def _axis(value: str | int) -> dict[str, Any]:
    if value == "variable":
        return {"role": "variable", "type": "integer"}
    if isinstance(value, int):
        return {"role": "constant", "type": "integer", "value": value}
    return {"role": "derived", "type": "integer", "expression": value}


def _tensor(line: str) -> dict[str, Any]:
    match = re.fullmatch(r"(\w+) (\w+) \[([\w, ]*)\](?: (\w+))?", line)
    if match is None:
        raise ValueError(f"{line!r} is not of the form 'name dtype [shape] layout'")
    name, dtype, shape, layout = match.groups()
    entries = [int(entry) if entry.isdigit() else entry for entry in shape.split(", ") if entry]
    tensor: dict[str, Any] = {"dtype": dtype, "shape": entries}
    return {"name": name, "tensor": {**tensor, "layout": layout} if layout else tensor}


def _check(board: Board) -> None:
    for name, axis in board.axes.items():
        if axis["role"] == "derived" and not names_in(axis["expression"]) <= board.axes.keys():
            raise FactsError(f"board {board.name}: axis {name} uses an axis that is not declared")
    symbols = {
        entry
        for argument in (*board.inputs, *board.outputs)
        for entry in argument["tensor"]["shape"]
        if isinstance(entry, str)
    }
    if not symbols <= board.axes.keys():
        raise FactsError(f"board {board.name}: shapes use undeclared axes {sorted(symbols - board.axes.keys())}")
    _, problem_digest = document("OperationSpec", board.operation())
    if problem_digest != board.problem_digest:
        raise FactsError(f"board {board.name}: its facts hash to {problem_digest}, not {board.problem_digest}")
    if (board.suite is not None) != (board.scoring == "aggregate"):
        raise FactsError(f"board {board.name}: a suite belongs to aggregate scoring and to nothing else")
    if board.suite is not None:
        _, workload_digest = document("WorkloadSuite", board.workload_suite())
        if workload_digest != board.suite.workload_digest:
            raise FactsError(
                f"board {board.name}: its suite hashes to {workload_digest}, not {board.suite.workload_digest}"
            )
