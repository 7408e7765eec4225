"""A snapshot's Parquet files as a Frictionless data package, made of the contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warehouse.contracts import PARQUET_ONLY, SCHEMA_VERSION, TABLES, Table

FILE = "datapackage.json"
MEDIA_TYPE = "application/vnd.apache.parquet"
_TYPES = {
    "VARCHAR": "string",
    "BIGINT": "integer",
    "DOUBLE": "number",
    "BOOLEAN": "boolean",
    "TIMESTAMPTZ": "datetime",
    "VARCHAR[]": "array",
    # Bytes as they are: no type of a data package is closer.
    "BLOB": "any",
}


def datapackage(
    snapshot: Mapping[str, Any], files: Mapping[str, Sequence[str]], sources: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """The description; the same for the same files, but for the snapshot's name and time.

    Args:
        snapshot: the snapshot's row.
        files: paths of each table's files, relative to the package.
        sources: rows of the table `sources`.
    """
    described = [table for table in (*TABLES.values(), *PARQUET_ONLY.values()) if files.get(table.name)]
    known = {table.name for table in described}
    sources = list(sources)
    return {
        "profile": "data-package",
        "name": str(snapshot["snapshot_id"]).lower(),
        "id": snapshot["content_digest"],
        "title": "Results of GPU kernel leaderboards",
        "version": SCHEMA_VERSION,
        "created": snapshot["created_at"].isoformat(),
        "licenses": [{"title": source["license"], "path": source["url"]} for source in sources],
        "sources": [{"title": source["name"], "path": source["url"]} for source in sources],
        "resources": [
            {
                "name": table.name,
                "description": table.description,
                "path": list(files[table.name]),
                "format": "parquet",
                "mediatype": MEDIA_TYPE,
                "schema": _schema(table, known),
            }
            for table in described
        ],
    }


def _schema(table: Table, known: set[str]) -> dict[str, Any]:
    return {
        "fields": [
            {
                "name": column.name,
                "type": _TYPES[column.type],
                "description": column.description,
                "constraints": {"required": not column.nullable},
            }
            for column in table.columns
        ],
        "primaryKey": list(table.key),
        "foreignKeys": [
            {"fields": list(fields), "reference": {"resource": target, "fields": list(targets)}}
            for target, fields, targets in table.foreign_keys()
            if target in known
        ],
    }
