"""A snapshot's Parquet files as an MLCommons Croissant 1.1 dataset, made of the contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warehouse.contracts import PARQUET_ONLY, SCHEMA_VERSION, TABLES, Column, Table

FILE = "croissant.json"
_PARQUET = "application/x-parquet"
_TYPES = {
    "VARCHAR": "sc:Text",
    "BIGINT": "cr:Int64",
    "DOUBLE": "cr:Float64",
    "BOOLEAN": "sc:Boolean",
    "TIMESTAMPTZ": "sc:DateTime",
    "VARCHAR[]": "sc:Text",
    "BLOB": "sc:Text",
}
# Written out, so that no reader has to fetch it.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{
        word: f"cr:{word}"
        for word in (
            "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject",
            "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5",
            "parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate",
            "separator", "source", "subField", "transform",
        )
    },
}  # fmt: skip


def croissant(
    snapshot: Mapping[str, Any],
    tables: Mapping[str, Sequence[str]],
    files: Mapping[str, Mapping[str, Any]],
    sources: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """The description; the same for the same files, but for the snapshot's name and time.

    Args:
        snapshot: the snapshot's row.
        tables: paths of each table's files, relative to the description.
        files: `sha256` (hex) and `size_bytes` of each file by its path.
        sources: rows of the table `sources`.
    """
    described = [table for table in (*TABLES.values(), *PARQUET_ONLY.values()) if tables.get(table.name)]
    sources = list(sources)
    credits_ = "; ".join(f"{source['attribution']}, {source['url']}" for source in sources)
    name = snapshot["snapshot_id"]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": f"kernelmart-{name}",
        "description": "Results of GPU kernel leaderboards, as exact, comparable tables.",
        "version": f"{SCHEMA_VERSION}+{name}",
        "datePublished": snapshot["created_at"].isoformat(),
        "citeAs": f"{credits_}; kernelmart snapshot {name}, {snapshot['content_digest']}",
        "creator": [{"@type": "sc:Organization", "name": source["name"], "url": source["url"]} for source in sources],
        "license": [
            {
                "@type": "sc:CreativeWork",
                "name": source["license"],
                "description": source["terms"],
                "url": source["url"],
            }
            for source in sources
        ],
        "distribution": [
            *(_file_object(path, files[path]) for table in described for path in tables[table.name]),
            *(_file_set(table.name) for table in described if len(tables[table.name]) > 1),
        ],
        "recordSet": [_record_set(table, tables) for table in described],
    }


def _file_object(path: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{stated['size_bytes']} B",
        "encodingFormat": _PARQUET,
        "sha256": stated["sha256"],
    }


def _file_set(name: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": _set_of(name),
        "name": _set_of(name),
        "encodingFormat": _PARQUET,
        "includes": f"parquet/{name}/*.parquet",
    }


def _record_set(table: Table, files: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.description,
        "key": [{"@id": f"{table.name}/{column}"} for column in table.key],
        "field": [_field(table, column, files) for column in table.columns],
    }


def _field(table: Table, column: Column, files: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": column.description,
        "dataType": _TYPES[column.type],
        "source": _column(table.name, column.name, files),
    }
    if column.type == "VARCHAR[]":
        field |= {"isArray": True, "arrayShape": "-1"}
    # Readers join by references, so that one to a part of a key would give rows twice.
    if column.references and files.get(column.references) and TABLES[column.references].key == (column.target,):
        field["references"] = _column(column.references, str(column.target), files)
    return field


def _column(table: str, column: str, files: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    paths = files[table]
    origin = {"fileSet": {"@id": _set_of(table)}} if len(paths) > 1 else {"fileObject": {"@id": paths[0]}}
    return {**origin, "extract": {"column": column}}


def _set_of(table: str) -> str:
    return f"files-of-{table}"
