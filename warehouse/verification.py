"""What a draft must be before it is published: whole, and with the same rows in every form, all of it answering."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contracts import PARQUET_ONLY
from warehouse.errors import SnapshotError

if TYPE_CHECKING:
    from warehouse.snapshots import Snapshot

# A few runs with all that a macro over a run reads.
_RUNS = """
    create temp table one as
    select runs.*, cases.correctness_key
    from (from runs where run_digest is not null limit 3) as runs
    left join cases
        on cases.source = runs.source and cases.problem = runs.problem and cases.workload_digest = runs.workload_digest
"""
# A run that the views of runs show: the best of a cohort is in all of them.
_SHOWN = "select coalesce((select min(best_run_id) from cohorts), (select min(run_id) from runs))"
# Something that a macro's parameter of each name can be; another's is null.
_ARGUMENTS = {
    "id": "''",
    "r": "one",
    "t": "observed_at",
    "x": "primary_value",
    "printed": "'1e+16'",
    **dict.fromkeys(("content", "name", "s", "value", "zeros"), "problem"),
}


def require_whole(draft: Snapshot) -> None:
    """See that a draft is what its manifest says: bytes, rows, views and macros.

    Raises:
        SnapshotError: naming what is not, and where.
    """
    if damage := next(draft.damage(), None):
        raise SnapshotError(f"{damage}; run the ingest again")
    try:
        with draft.open() as connection:
            _require_rows(draft, connection)
            _require_answers(draft, connection)
    except (duckdb.Error, pa.ArrowException) as error:
        raise SnapshotError(f"{draft.folder}: {' '.join(str(error).split())}; nothing was published") from error


def _require_rows(draft: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
    for name, stated in draft.manifest["tables"].items():
        exported = sum(pq.read_metadata(path).num_rows for path in draft.parquet(name))
        rows = exported
        if name not in PARQUET_ONLY:
            (rows,) = connection.table(f'"{name}"').aggregate("count(*)").fetchall()[0]
        if not stated["rows"] == rows == exported:
            raise SnapshotError(
                f"{draft.folder}: {name} has {stated['rows']} rows by the manifest, {rows} in DuckDB and {exported} in "
                "Parquet; nothing was published, run the ingest again"
            )


def _require_answers(draft: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
    """Ask each view for a row, each macro for a value, and a run for its document."""
    (shown,) = connection.execute(_SHOWN).fetchall()[0]
    of_one = duckdb.ColumnExpression("run_id") == duckdb.ConstantExpression(shown)
    for (view,) in connection.execute("select view_name from duckdb_views() where not internal").fetchall():
        rows = connection.table(f'"{view}"')
        # Where it has runs, of one: joined in full, the tables of a large snapshot may outgrow the memory limit.
        (rows.filter(of_one) if "run_id" in rows.columns else rows).limit(1).fetchall()
    macros = connection.execute(
        "select function_name, parameters from duckdb_functions() where function_type = 'macro' and not internal"
    ).fetchall()
    connection.execute(_RUNS)
    runs = connection.table("one")
    for macro, parameters in macros:
        arguments = ", ".join(_ARGUMENTS.get(parameter, "null") for parameter in parameters)
        runs.project(f'"{macro}"({arguments})').fetchall()
    stated = runs.project("run_id, run_digest, comparison_key, comparison_key(one)").fetchall()
    for run_id, run_digest, key, found_key in stated:
        # One by one, each is found without making the documents of all.
        (found,) = connection.execute("select digest(manifest(?))", [run_id]).fetchall()[0]
        if run_digest != found or (key is not None and key != found_key):
            raise SnapshotError(f"{draft.folder}: run {run_id} has digests that are not its own; nothing was published")
