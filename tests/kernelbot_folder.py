"""Small folders of KernelBot files, written and taken through reading and normalising."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assets.kernelbot.boards import KNOWN_SOURCES, read_boards, read_known_sources
from assets.kernelbot.facts import load_boards
from assets.kernelbot.normalise import BoardListing, FileRows, Normaliser
from assets.kernelbot.read import ROWS, SubmissionsFile
from tests import oracle
from warehouse.database import connect
from warehouse.parts import PartStore
from warehouse.raw import RawFile

Row = dict[str, Any]

MOMENT = datetime(2025, 6, 1, 9, 11, 14, 635_999)
SPEC = "m: 1024; n: 1536; k: 7168; seed: 8135"


def board(name: str, scoring: str) -> Row:
    """Facts of a board as a document: one case and one axis."""
    suite = {"statistic": "geomean", "cases": [{"externalId": "0", "axes": {"size": 4}}]}
    return {
        "leaderboard": name,
        "upstream_id": 7,
        "slug": f"board-{name}",
        "title": name,
        "tags": [],
        "family": "reduction",
        "scoring": scoring,
        "ranking_by": "geom",
        "axes": {"size": {"role": "variable", "type": "integer"}},
        "inputs": [{"name": "x", "tensor": {"shape": ["size"], "dtype": "fp32"}}],
        "outputs": [{"name": "y", "tensor": {"shape": [1], "dtype": "fp32"}}],
        "semantics": {"mutation": "none", "determinism": "unspecified"},
        "suite": suite if scoring == "aggregate" else None,
    }


def case(mean: Any = "1000.5", spec: Any = SPEC, **figures: Any) -> Row:
    """The figures of one case, as text."""
    return {"spec": spec, "mean": mean, "best": "900.0", "worst": "1100.0", "std": "5.5", "runs": "3"} | figures


def result(*cases: Row, **other: Any) -> Row:
    """A run's result: its cases in order, without figures that are None."""
    fields = {f"benchmark.{i}.{name}": value for i, figures in enumerate(cases) for name, value in figures.items()}
    return {name: value for name, value in fields.items() if value is not None} | other


def case_row(submission_id: Any = 1, run_id: Any = 10, *cases: Row, **other: Any) -> Row:
    """A row of a per-case file: a passed leaderboard run of amd-fp8-mm on an MI300X, with one case or those given."""
    return {
        "submission_id": submission_id,
        "leaderboard_id": 399,
        "user_id": 3,
        "submission_time": MOMENT,
        "file_name": "kernel.py",
        "code_id": 5,
        "run_id": run_id,
        "run_mode": "leaderboard",
        "run_score": 1.0005e-06,
        "run_passed": True,
        "run_result": result(*(cases or (case(),))),
        "run_system_info": {"gpu": "AMD Instinct MI300X", "torch": "2.8", "platform": "Linux", "device_count": 1},
    } | other


def score_row(submission_id: Any = 1, score: Any = 0.25, **other: Any) -> Row:
    """A row of an aggregate file: a passed leaderboard score of trimul on a B200."""
    return {
        "submission_id": submission_id,
        "leaderboard_id": 496,
        "problem_name": "trimul",
        "user_id": "3",
        "user_name": "someone",
        "code_id": 5,
        "file_name": "kernel.py",
        "submission_time": MOMENT,
        "status": "succeeded",
        "score": score,
        "passed": True,
        "mode": "leaderboard",
        "runner": "B200",
    } | other


def table(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table that has, as its structs have, the fields of all rows."""
    rows = list(rows)
    # Left alone, pyarrow takes the columns of the first row.
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])


def replaced(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """The table with another column of that name, in its place if it has one."""
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), name, column)
    return rows.append_column(name, column)


def write(folder: Path, name: str, rows: pa.Table | Iterable[Row]) -> Path:
    """Write `<folder>/<name>.parquet`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    pq.write_table(rows if isinstance(rows, pa.Table) else table(rows), path)
    return path


def raw_file(path: Path) -> RawFile:
    """A file as the raw store would describe it."""
    content = path.read_bytes()
    return RawFile(path.name, path, oracle.sha256(content), len(content), datetime.now(UTC))


def opened(path: Path) -> SubmissionsFile:
    """A file opened for reading."""
    return SubmissionsFile(raw_file(path))


def read(path: Path) -> tuple[list[Row], SubmissionsFile]:
    """All typed rows of a file, checked against their schema."""
    file = opened(path)
    rows: list[Row] = []
    for batch in file.rows():
        batch.validate(full=True)
        assert batch.schema.equals(ROWS)
        rows += batch.to_pylist()
    return rows, file


def rejected(file: SubmissionsFile) -> list[tuple[str, str]]:
    """Number and reason of each row that was set aside."""
    return [(reject["item"], reject["reason"]) for reject in file.rejects]


def by_submission(rows: list[Row], *names: str) -> dict[int, Any]:
    """The named columns of each row, by the number of its submission."""
    return {
        int(row["submission_key"].split(":")[1]): row[names[0]]
        if len(names) == 1
        else tuple(row[name] for name in names)
        for row in rows
    }


@dataclass
class Normalised:
    """The rows of all tables, and what else the files say."""

    tables: dict[str, list[Row]] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    drift: list[dict[str, str]] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)
    boardless: list[Row] = field(default_factory=list)

    @property
    def runs(self) -> list[Row]:
        """Runs in order of their ids."""
        return sorted(self.tables["runs"], key=lambda run: run["run_id"])

    @property
    def run(self) -> Row:
        """The only run."""
        (run,) = self.tables["runs"]
        return run

    @property
    def conflicts(self) -> list[tuple[str, str]]:
        """File and detail of the conflicts, each once."""
        return sorted({(entry["locator"], entry["detail"]) for entry in self.drift if entry["kind"] == "conflict"})


def normalised(folder: Path, scratch: Path, *, backwards: bool = False) -> Normalised:
    """All KernelBot files of a folder, read and normalised; `backwards` takes the files in the opposite order."""
    made = Normalised()
    listings: list[BoardListing] = []
    known = KNOWN_SOURCES.empty_table()
    rows: list[FileRows] = []
    for path in sorted(folder.glob("*.parquet"), reverse=backwards):
        file = opened(path)
        if file.family == "boards":
            listings, _ = read_boards(file)
        elif file.family == "sources":
            known, _ = read_known_sources(file)
        else:
            with PartStore(scratch).making("rows", path.stem, {}) as writer:
                writer.write("rows", file.rows(), ROWS)
            made.rejects += [{"locator": path.name, **reject} for reject in file.rejects]
            part = scratch / "rows" / path.stem / "rows.parquet"
            rows.append(FileRows(path.name, file.source.content_digest, file.family, part))
    with connect(threads=1) as connection:
        normaliser = Normaliser(connection, rows, listings, load_boards(), known)
        for files in normaliser.groups():
            for name, schema, batches in normaliser.tables(files):
                made.tables.setdefault(name, []).extend(batches.read_all().cast(schema).to_pylist())
        made.boardless = normaliser.boardless()
        for name, rows_of_table in normaliser.shared_tables().items():
            made.tables[name] = rows_of_table.to_pylist()
        made.counts = normaliser.counts()
        made.drift = normaliser.drift()
    return made
