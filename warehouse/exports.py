"""Tables of a snapshot in other forms, for others: without what a source does not let anybody republish.

Whatever leaves a snapshot here goes through `Shown`. A row is shown when its source is: by its column `source`, by its
keys (`run_id`, `submission_key` and `author_key` begin with their source), by the submissions that have a text, or by
the runs and files that lead to it. A table of which none of that can be told is shown to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse import files
from warehouse.attribution import FILE as ATTRIBUTION
from warehouse.attribution import attribution
from warehouse.contracts import SCHEMA_VERSION, TABLES, Table
from warehouse.database import connect, open_files
from warehouse.errors import KernelmartError
from warehouse.home import Home
from warehouse.identity import canonical_json
from warehouse.snapshots import Snapshot
from warehouse.statements import statement

FORMS = ("jsonl", "csv", "arrow")
DESCRIPTION = "export.json"
BATCH_ROWS = 16_384
# Lines are fetched in pieces of so many: a line may be long.
_LINES = 1024
_BATCH = "select * exclude (row_of_batch) from batch order by row_of_batch"
# Ends of the names of keys that begin with their source's name.
_OWNED = ("run_id", "submission_key", "author_key")
_JSON = {
    "VARCHAR": "printed_json({0})",
    "VARCHAR[]": "printed_json({0})",
    "BIGINT": "{0}::varchar",
    "DOUBLE": "printed_double({0})",
    "BOOLEAN": "{0}::varchar",
    "TIMESTAMPTZ": "jcs_plain(printed_instant({0}))",
    # Text that is JSON already.
    "JSON": "{0}::varchar",
}
_CSV = {
    **_JSON,
    "VARCHAR": "csv_quoted(csv_safe({0}))",
    "VARCHAR[]": "csv_quoted(printed_json({0}))",
    "TIMESTAMPTZ": "printed_instant({0})",
}


class ExportError(KernelmartError):
    """The export cannot be made."""


@dataclass(frozen=True)
class Exported:
    """What an export holds: rows of each table, and the sources that were left out."""

    folder: Path
    rows: Mapping[str, int]
    left_out: Sequence[str]


def not_redistributable(snapshot: Snapshot) -> list[str]:
    """Names of the sources whose rows may not leave the warehouse, sorted."""
    return sorted(row["source"] for row in _sources(snapshot) if not row["redistributable"])


class Shown:
    """The rows of a snapshot that anybody may see.

    Args:
        snapshot: a published snapshot.
        connection: takes a view by each table's name, of the rows that are shown.
    """

    def __init__(self, snapshot: Snapshot, connection: duckdb.DuckDBPyConnection) -> None:
        self.snapshot = snapshot
        self.connection = connection
        self.left_out = not_redistributable(snapshot)
        self.sources = [row for row in _sources(snapshot) if row["redistributable"]]
        connection.execute(statement("exports/macros"))
        # A query's order holds for the lines that are made of its rows.
        connection.execute("set preserve_insertion_order = true")
        shown = pa.table({"source": pa.array([row["source"] for row in self.sources], pa.string())})
        connection.register("shown", shown)
        for name, table in TABLES.items():
            if paths := snapshot.parquet(name):
                open_files(connection, f"all_{name}", paths)
            else:
                connection.register(f"all_{name}", table.empty())
        connection.execute(statement("exports/shown_texts"))
        for name, table in TABLES.items():
            connection.execute(f'create temp view "{name}" as from all_{name} as {name} where {self._condition(table)}')

    def batches(self, name: str) -> Iterator[pa.Table]:
        """Rows of a table in published order, some `BATCH_ROWS` at a time."""
        table = TABLES[name]
        condition = self._condition(table)
        for rows in _gathered(self.snapshot.parquet(name), table.arrow_schema()):
            if condition != "true":
                relation = self.connection.from_arrow(_ordered(rows)).set_alias(name).filter(condition)
                shown = relation.order("row_of_batch").to_arrow_table().drop_columns(["row_of_batch"])
                rows = shown.cast(rows.schema).combine_chunks()
            yield self._without_inputs(rows) if name == "snapshot" and self.left_out else rows

    def lines(
        self, text: str, line: Callable[[Mapping[str, str]], str], name: str | None = None
    ) -> Iterator[list[str]]:
        """Lines made of a query's rows, in pieces.

        Args:
            text: the query, its rows in order; `from batch` in it sees some rows of `name` at a time, in `row_of_batch`
                their place.
            line: makes the expression of a line from the expressions and types of the query's columns.
            name: the table that is read through, batch by batch; without one the query is asked once.
        """
        if name is None:
            yield from self._asked(text, line)
            return
        for batch in self.batches(name):
            self.connection.register("batch", _ordered(batch))
            yield from self._asked(text, line)

    def _asked(self, text: str, line: Callable[[Mapping[str, str]], str]) -> Iterator[list[str]]:
        query = self.connection.sql(text)
        columns = {name: _type(str(kind)) for name, kind in zip(query.columns, query.types, strict=True)}
        for piece in query.project(line(columns)).to_arrow_reader(_LINES):
            yield piece.column(0).to_pylist()

    def _condition(self, table: Table) -> str:
        """The condition by which rows of a table are shown; `true` where all are.

        Raises:
            ExportError: where the rows' source cannot be told.
        """
        if not self.left_out:
            return "true"
        sourced = "source" in table.names
        conditions = ["source in (from shown)"] if sourced else []
        for column in table.columns:
            if column.name.endswith(_OWNED):
                condition = f"split_part({column.name}, ':', 1) in (from shown)"
            elif not sourced and (column.name == "source_digest" or column.references == "artifacts"):
                condition = f"{column.name} in (from shown_texts)"
            else:
                continue
            conditions.append(f"({column.name} is null or {condition})" if column.nullable else condition)
        try:
            return " and ".join(conditions) or statement(f"exports/shown/{table.name}")
        except FileNotFoundError as error:
            raise ExportError(
                f"{table.name}: nothing tells whose its rows are, and not all sources may be republished"
            ) from error

    def _without_inputs(self, rows: pa.Table) -> pa.Table:
        """The snapshot's row without the inputs that came from sources that are left out."""
        inputs = [
            canonical_json({name: value for name, value in json.loads(text).items() if name not in self.left_out})
            for text in rows.column("inputs").to_pylist()
        ]
        place = rows.schema.get_field_index("inputs")
        return rows.set_column(place, rows.schema.field(place), pa.array(inputs, pa.string()))


def export(snapshot: Snapshot, folder: Path, form: str, write: Callable[[Shown, Path], Mapping[str, int]]) -> Exported:
    """Make a folder of what a snapshot has that anybody may see; it appears whole, or not at all.

    Beside what `write` puts there, it has the terms of the sources and a description without any time, so that one
    snapshot exported twice gives the same bytes.

    Args:
        snapshot: a published snapshot, whose files are sound.
        folder: the folder to be.
        form: name of the form.
        write: fills a folder; gives the rows of each table.

    Raises:
        ExportError: where there is something at `folder`, it is among the warehouse's own, or memory or disk do not
            suffice.
    """
    if folder.exists() or folder.is_symlink():
        raise ExportError(f"{folder}: there is something here already; name a folder that is not there yet")
    home = Home(snapshot.folder.parent.parent)
    if any(folder.resolve().is_relative_to(own.resolve()) for own in (home.snapshots, home.raw, home.tables)):
        raise ExportError(f"{folder}: it would lie among the warehouse's own files; name a folder elsewhere")
    try:
        with files.writing_folder(folder) as aside:
            shown, rows = _filled(snapshot, aside, form, write)
    except duckdb.Error as error:
        raise ExportError(f"{folder}: {' '.join(str(error).split())}; nothing was exported") from error
    except OSError as error:
        # It may name a file of the folder aside, which is gone.
        raise ExportError(f"{folder}: {error.strerror or error}; nothing was exported") from error
    return Exported(folder, rows, shown.left_out)


def _filled(
    snapshot: Snapshot, folder: Path, form: str, write: Callable[[Shown, Path], Mapping[str, int]]
) -> tuple[Shown, dict[str, int]]:
    """Put an export's files into a folder; what was shown, and the rows of each table."""
    spill = folder / ".spill"
    with connect(temporary=spill) as connection:
        shown = Shown(snapshot, connection)
        rows = dict(write(shown, folder))
    files.remove_tree(spill)
    (folder / ATTRIBUTION).write_text(attribution(shown.sources), encoding="utf-8", newline="\n")
    manifest = snapshot.manifest
    description = {
        **{name: manifest[name] for name in ("snapshot_id", "content_digest", "schema_version", "ranking_policy")},
        "format": form,
        "rows": rows,
        "files": {
            path.name: {"sha256": files.sha256(path), "size_bytes": path.stat().st_size}
            for path in sorted(folder.iterdir())
        },
    }
    files.write_json(folder / DESCRIPTION, description)
    return shown, rows


def write_tables(form: str, names: Sequence[str]) -> Callable[[Shown, Path], dict[str, int]]:
    """What writes tables, and `sources` in any case, in one of `FORMS`: a file a table."""
    writer = {"jsonl": _write_jsonl, "csv": _write_csv, "arrow": _write_arrow}[form]
    wanted = [name for name in TABLES if name in (*names, "sources")]

    def write(shown: Shown, folder: Path) -> dict[str, int]:
        return {name: writer(shown, name, folder / f"{name}.{form}") for name in wanted}

    return write


def json_object(columns: Mapping[str, str]) -> str:
    """Expression of a JSON object made of columns, given by name with their types."""
    members = [
        f"'{',' if place else '{'}\"{name}\":', coalesce({_JSON[kind].format(_quoted(name))}, 'null')"
        for place, (name, kind) in enumerate(columns.items())
    ]
    # All at once: in a chain of `||` each link is a text of its own.
    return f"concat({', '.join(members)}, '}}')"


def _write_jsonl(shown: Shown, name: str, path: Path) -> int:
    return _write_lines(path, shown.lines(_BATCH, lambda columns: f"concat({json_object(columns)}, chr(10))", name))


def _write_csv(shown: Shown, name: str, path: Path) -> int:
    header = ",".join(TABLES[name].names) + "\r\n"
    return _write_lines(path, shown.lines(_BATCH, _csv_line, name), header)


def _csv_line(columns: Mapping[str, str]) -> str:
    cells = ", ',', ".join(_CSV[kind].format(_quoted(name)) for name, kind in columns.items())
    return f"concat({cells}, chr(13), chr(10))"


def _write_lines(path: Path, pieces: Iterable[list[str]], header: str = "") -> int:
    rows = 0
    with path.open("wb") as file:
        file.write(header.encode())
        for piece in pieces:
            file.write("".join(piece).encode())
            rows += len(piece)
    return rows


def _write_arrow(shown: Shown, name: str, path: Path) -> int:
    metadata = {
        "kernelmart.table": name,
        "kernelmart.description": TABLES[name].description,
        "kernelmart.schema_version": SCHEMA_VERSION,
        "kernelmart.snapshot_id": shown.snapshot.snapshot_id,
    }
    schema = TABLES[name].arrow_schema().with_metadata(metadata)
    rows = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in shown.batches(name):
            writer.write_table(batch.cast(schema))
            rows += batch.num_rows
    return rows


def _sources(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Rows of the snapshot's table `sources`, in published order."""
    rows: list[dict[str, Any]] = []
    for path in snapshot.parquet("sources"):
        rows += pq.read_table(path, partitioning=None).to_pylist()
    return rows


def _gathered(paths: Iterable[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of some files, some `BATCH_ROWS` at a time however small the files are, in one chunk each."""
    waiting: list[pa.RecordBatch] = []
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                waiting.append(batch)
                if sum(one.num_rows for one in waiting) >= BATCH_ROWS:
                    yield pa.Table.from_batches(waiting).cast(schema).combine_chunks()
                    waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting).cast(schema).combine_chunks()


def _ordered(rows: pa.Table) -> pa.Table:
    return rows.append_column("row_of_batch", pa.array(range(rows.num_rows), pa.int64()))


def _type(name: str) -> str:
    return {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ", "INTEGER": "BIGINT"}.get(name, name)


def _quoted(name: str) -> str:
    return f'"{name}"'
