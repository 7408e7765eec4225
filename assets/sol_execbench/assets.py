"""SOL-ExecBench's assets: raw answers, answers that can be read, and the tables of the contract."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.sol_execbench.build import PATTERNS, TABLE_NAMES, build_tables, check_answers
from assets.sol_execbench.definitions import SOURCE
from assets.tables import step, table_results, table_specs

GROUP = "sol_execbench"
RAW = dg.AssetKey([GROUP, "raw_answers"])
ANSWERS = dg.AssetKey([GROUP, "answers"])


@dg.asset(key=RAW, group_name=GROUP, kinds={"json"}, required_resource_keys={"warehouse", "request"})
def raw_answers(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The leaderboard's answers, byte for byte, in the raw store."""
    warehouse, request = context.resources.warehouse, context.resources.request
    with step("sol_execbench/raw_answers") as counts:
        collection = request.collect(warehouse, SOURCE, "sol_execbench", PATTERNS)
        counts["files"] = len(collection.files) if collection else 0
    warehouse.state.write("sol_execbench/raw_answers", collection.as_record() if collection else None)
    files = collection.files if collection else ()
    return dg.MaterializeResult(metadata={"answers": len(files), "bytes": sum(file.size_bytes for file in files)})


@dg.asset(key=ANSWERS, deps=[RAW], group_name=GROUP, kinds={"json"}, required_resource_keys={"warehouse"})
def answers(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The answers that can be read, with their last good content in place of those that cannot."""
    warehouse = context.resources.warehouse
    collection = warehouse.collection("sol_execbench/raw_answers")
    with step("sol_execbench/answers") as counts:
        if collection:
            collection = check_answers(collection, warehouse.raw.last_good(SOURCE))
        counts["stale"] = len(collection.stale) if collection else 0
    warehouse.state.write("sol_execbench/answers", collection.as_record() if collection else None)
    stale = collection.stale if collection else ()
    return dg.MaterializeResult(metadata={"stale": len(stale), "why": "\n".join(stale)})


@dg.multi_asset(
    name="sol_execbench_tables",
    specs=table_specs(GROUP, TABLE_NAMES, [ANSWERS], {"python", "parquet"}),
    required_resource_keys={"warehouse"},
)
def tables(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
    """Runs, cases, submissions and their documents, with exact identities."""
    warehouse = context.resources.warehouse
    collection = warehouse.collection("sol_execbench/answers")
    with step("sol_execbench/tables"):
        files = build_tables(warehouse.parts, collection) if collection else {}
    warehouse.state.write("sol_execbench/tables", files)
    yield from table_results(GROUP, TABLE_NAMES, warehouse.parts.root, files)
