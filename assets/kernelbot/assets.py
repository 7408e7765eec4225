"""KernelBot's assets: raw files, typed rows, and the tables of the contract."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.kernelbot.build import PATTERNS, TABLE_NAMES, build_tables, read_files
from assets.kernelbot.pull import pull
from assets.kernelbot.terms import SOURCE
from assets.retries import retried
from assets.tables import row_counts, step, table_results, table_specs
from warehouse import snapshots

GROUP = "kernelbot"
RAW = dg.AssetKey([GROUP, "raw_files"])
ROWS = dg.AssetKey([GROUP, "rows"])


@dg.asset(key=RAW, group_name=GROUP, kinds={"parquet"}, required_resource_keys={"warehouse", "request", "upstream"})
def raw_files(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The dataset's files, byte for byte, in the raw store."""
    warehouse, request, upstream = (getattr(context.resources, name) for name in ("warehouse", "request", "upstream"))
    with step("kernelbot/raw_files") as counts, retried(context, upstream.retries, upstream.first_wait_seconds):
        collection = request.collect(
            warehouse,
            SOURCE,
            "kernelbot",
            PATTERNS,
            lambda last_good, again: pull(
                upstream.hub, warehouse.raw, last_good, whole=request.depth is not None, again=again
            ),
        )
        files = collection.files if collection else ()
        counts["files"], counts["bytes"] = len(files), sum(file.size_bytes for file in files)
    warehouse.state.write("kernelbot/raw_files", collection.as_record() if collection else None)
    return dg.MaterializeResult(metadata={**counts, "revision": (collection and collection.revision) or "none"})


@dg.asset(key=ROWS, deps=[RAW], group_name=GROUP, kinds={"arrow"}, required_resource_keys={"warehouse", "request"})
def rows(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """Typed rows of every file, whatever types the export has chosen."""
    warehouse, depth = context.resources.warehouse, context.resources.request.depth
    collection = warehouse.collection("kernelbot/raw_files")
    with step("kernelbot/rows") as counts:
        if collection:
            collection = read_files(warehouse.parts, collection, warehouse.raw.last_good(SOURCE), depth)
        counts["stale"] = len(collection.stale) if collection else 0
    warehouse.state.write("kernelbot/rows", collection.as_record() if collection else None)
    stale = collection.stale if collection else ()
    return dg.MaterializeResult(metadata={**counts, "why": "\n".join(stale)})


@dg.multi_asset(
    name="kernelbot_tables",
    specs=table_specs(GROUP, TABLE_NAMES, [ROWS], {"duckdb", "parquet"}),
    required_resource_keys={"warehouse", "request"},
)
def tables(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
    """Runs, cases, submissions and their documents, with exact identities."""
    warehouse, depth = context.resources.warehouse, context.resources.request.depth
    collection = warehouse.collection("kernelbot/rows")
    with step("kernelbot/tables") as counts:
        files: dict[str, list[str]] = {}
        if collection:
            before = snapshots.sound(warehouse.home)
            files = build_tables(warehouse.parts, collection, warehouse.home.temporary, depth, before)
        counts |= row_counts(warehouse.parts.root, files, ("runs", "artifacts", "rejects", "drift"))
    warehouse.state.write("kernelbot/tables", files)
    yield from table_results(GROUP, TABLE_NAMES, warehouse.parts.root, files, {"seconds": counts["seconds"]})
