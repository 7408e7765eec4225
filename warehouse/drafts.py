"""Drafts of snapshots: every table written as Parquet and into one DuckDB file, with digests of all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from warehouse import files
from warehouse.contracts import SCHEMA_VERSION, TABLES, Table, datapackage
from warehouse.database import connect, open_files
from warehouse.digests import RowsDigest
from warehouse.home import Home
from warehouse.identity import canonical_json, digest, kebab
from warehouse.snapshots import DATABASE, Snapshot, discard_draft, draft_folder, sound
from warehouse.statements import names, statement

# Opened by every DuckDB from 1.0 on.
STORAGE_VERSION = "v1.0.0"
BATCH_ROWS = files.ROW_GROUP_ROWS
# Say what a snapshot is or how it differs from another; no part of what it holds.
_OUTSIDE_CONTENT = ("snapshot", "movements")


def build(home: Home, parts: Mapping[str, Iterable[Path]], about: Mapping[str, Any]) -> Snapshot:
    """Build a draft of all tables.

    Args:
        home: the warehouse.
        parts: for each table, the Parquet files whose rows it has, each row once.
        about: `ranking_policy`, `facts_revision`, `code_version`, `inputs` (JSON) and `inputs_key`.
    """
    target = draft_folder(home)
    discard_draft(home)
    with files.writing_folder(target) as folder, connect(temporary=home.temporary) as connection:
        writer = _Writer(folder, connection, about)
        _previous_drift(connection, sound(home))
        writer.write_tables({name: [str(path) for path in paths] for name, paths in parts.items()})
        content_digest = writer.content_digest()
        now = datetime.now(UTC)
        snapshot_id = f"{now:%Y%m%dT%H%M%SZ}-{content_digest.removeprefix('sha256:')[:8]}"
        row = {
            "snapshot_id": snapshot_id,
            "created_at": now,
            "content_digest": content_digest,
            "schema_version": SCHEMA_VERSION,
            **{name: about[name] for name in ("ranking_policy", "facts_revision", "code_version")},
            "inputs": canonical_json(about["inputs"]),
        }
        writer.write_rows("snapshot", pa.Table.from_pylist([row], schema=TABLES["snapshot"].arrow_schema()))
        writer.write_database()
        files.write_json(folder / "datapackage.json", datapackage(snapshot_id, writer.resources))
        files.write_bytes(folder / "ATTRIBUTION.md", _attribution(connection, writer.parquet("sources")).encode())
        manifest = {
            **row,
            "created_at": now.isoformat(),
            "inputs": about["inputs"],
            "inputs_key": about["inputs_key"],
            "tables": writer.tables,
            "files": _files(folder),
        }
        files.write_json(folder / "manifest.json", manifest)
    return Snapshot(target)


class _Writer:
    """Writes the tables of one draft and keeps account of them."""

    def __init__(self, folder: Path, connection: duckdb.DuckDBPyConnection, about: Mapping[str, Any]) -> None:
        self._folder = folder
        self._connection = connection
        self._metadata = {
            "kernelmart.schema_version": SCHEMA_VERSION,
            "kernelmart.ranking_policy": about["ranking_policy"],
            "kernelmart.facts_revision": about["facts_revision"],
        }
        self.tables: dict[str, dict[str, Any]] = {name: {"rows": 0, "digests": {}} for name in TABLES}
        self.resources: dict[str, list[str]] = {name: [] for name in TABLES}

    def write_tables(self, parts: Mapping[str, list[str]]) -> None:
        """Write every table that comes from parts, and those that are made of them."""
        self._write_runs(parts.get("runs", []))
        for name in TABLES:
            if name in ("runs", "measurements", "snapshot"):
                continue
            self._rows_of(parts.get("runs" if name == "run_lookup" else name, []), TABLES[name])
            text = (
                statement(f"snapshot/{name}") if name in ("run_lookup", "drift") else _sorted("part_rows", TABLES[name])
            )
            self._write(name, "all", text)

    def write_rows(self, name: str, rows: pa.Table) -> None:
        """Write a small table."""
        self._connection.from_arrow(rows).create_view("part_rows", replace=True)
        self._write(name, "all", _sorted("part_rows", TABLES[name]))

    def parquet(self, name: str) -> list[str]:
        """Parquet files of a table that was written."""
        return [str(self._folder / path) for path in self.resources[name]]

    def content_digest(self) -> str:
        """Digest over the rows of all tables."""
        content = {name: table["digests"] for name, table in self.tables.items() if name not in _OUTSIDE_CONTENT}
        return digest(canonical_json(content))

    def write_database(self) -> None:
        """Put the Parquet files' rows into the DuckDB file, with comments, views and macros."""
        path = self._folder / DATABASE
        connection = self._connection
        connection.execute(f"attach {_quoted(str(path))} as published (storage_version {_quoted(STORAGE_VERSION)})")
        connection.execute("use published")
        for name, table in TABLES.items():
            connection.execute(table.ddl())
            if paths := self.parquet(name):
                text = f'insert into "{name}" select * from read_parquet($files, hive_partitioning = false)'
                connection.execute(text, {"files": paths})
        for text in ("macros", "snapshot/manifest", *names("views")):
            connection.execute(statement(text))
        connection.execute("use memory")
        connection.execute("checkpoint published")
        connection.execute("detach published")

    def _write_runs(self, paths: list[str]) -> None:
        """Runs and their measurements, in parts by source and problem, so that nothing large is sorted at once."""
        where: dict[tuple[str, str], list[str]] = {}
        for path in paths:
            open_files(self._connection, "part_rows", [path])
            rows = self._connection.execute("select distinct source, problem from part_rows").fetchall()
            for source, problem in rows:
                where.setdefault((source, problem), []).append(path)
        for source, problem in sorted(where):
            open_files(self._connection, "part_rows", where[source, problem])
            text = "create or replace temp table part_runs as select * from part_rows where source = ? and problem = ?"
            self._connection.execute(text, [source, problem])
            part = f"{kebab(source)}-{hashlib.sha256(f'{source}/{problem}'.encode()).hexdigest()[:12]}"
            self._write("runs", part, _sorted("part_runs", TABLES["runs"]))
            self._write("measurements", part, statement("snapshot/measurements"))
        self._connection.execute("drop table if exists part_runs")

    def _rows_of(self, paths: list[str], table: Table) -> None:
        """Make `part_rows` the rows of some files."""
        if paths:
            open_files(self._connection, "part_rows", paths)
        else:
            source = TABLES["runs"] if table.name == "run_lookup" else table
            self._connection.from_arrow(source.empty()).create_view("part_rows", replace=True)

    def _write(self, name: str, part: str, text: str) -> None:
        table = TABLES[name]
        schema = table.arrow_schema()
        account = RowsDigest(schema, table.volatile)

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in self._connection.sql(text).to_arrow_reader(BATCH_ROWS):
                columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
                rows = pa.RecordBatch.from_arrays(columns, schema=schema)
                account.update(rows)
                yield rows

        folder = self._folder / "parquet" / name
        path = folder / "part"
        files.write_parquet(
            path,
            counted(),
            schema,
            sort=table.sort,
            metadata={**self._metadata, "kernelmart.table": name},
            bloom_filters=table.looked_up,
        )
        final = folder / f"{part}-{files.sha256(path)[:8]}.parquet"
        path.rename(final)
        self.tables[name]["rows"] += account.rows
        self.tables[name]["digests"][part] = account.digest()
        self.resources[name].append(final.relative_to(self._folder).as_posix())


def _previous_drift(connection: duckdb.DuckDBPyConnection, previous: Snapshot | None) -> None:
    paths = [str(path) for path in previous.parquet("drift")] if previous else []
    if paths:
        open_files(connection, "previous_drift", paths)
    else:
        connection.register("previous_drift", TABLES["drift"].empty())


def _sorted(relation: str, table: Table) -> str:
    columns = ", ".join(f'"{name}"' for name in table.names)
    order = ", ".join(f'"{name}" nulls last' for name in table.sort)
    return f"select {columns} from {relation} order by {order}"


def _attribution(connection: duckdb.DuckDBPyConnection, paths: list[str]) -> str:
    open_files(connection, "part_rows", paths)
    text = "select name, url, license, attribution, terms from part_rows order by source"
    rows = connection.execute(text).fetchall()
    lines = ["# Attribution", ""]
    for name, url, license_name, attribution, terms in rows:
        lines += [f"## {name}", "", f"{attribution}, {url}", "", f"Licence: {license_name}. {terms}", ""]
    return "\n".join(lines)


def _files(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        path.relative_to(folder).as_posix(): {"sha256": files.sha256(path), "size_bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def inputs_key(inputs: Any) -> str:
    """Digest of all that a snapshot is made from; equal keys give equal snapshots."""
    return digest(json.dumps(inputs, sort_keys=True))
