"""SOL-ExecBench's assets: raw answers, answers that can be read, and the tables of the contract."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.retries import retried
from assets.sol_execbench.build import PATTERNS, TABLE_NAMES, build_tables, check_answers
from assets.sol_execbench.pull import pull
from assets.sol_execbench.read import about
from assets.sol_execbench.terms import SOURCE
from assets.tables import row_counts, step, table_results, table_specs

GROUP = "sol_execbench"
RAW = dg.AssetKey([GROUP, "raw_answers"])
ANSWERS = dg.AssetKey([GROUP, "answers"])


@dg.asset(key=RAW, group_name=GROUP, kinds={"json"}, required_resource_keys={"warehouse", "request", "upstream"})
def raw_answers(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The leaderboard's answers, byte for byte, in the raw store."""
    warehouse, request, upstream = (getattr(context.resources, name) for name in ("warehouse", "request", "upstream"))
    with step("sol_execbench/raw_answers") as counts, retried(context, upstream.retries, upstream.first_wait_seconds):
        collection = request.collect(
            warehouse,
            SOURCE,
            "sol_execbench",
            PATTERNS,
            lambda last_good, again: pull(
                upstream.sol_api, warehouse.raw, last_good, datetime.now(UTC), again=_kernels(again)
            ),
            about,
        )
        files = collection.files if collection else ()
        counts["files"], counts["bytes"] = len(files), sum(file.size_bytes for file in files)
    warehouse.state.write("sol_execbench/raw_answers", collection.as_record() if collection else None)
    return dg.MaterializeResult(metadata=counts)


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
    return dg.MaterializeResult(metadata={**counts, "why": "\n".join(stale)})


@dg.multi_asset(
    name="sol_execbench_tables",
    specs=table_specs(GROUP, TABLE_NAMES, [ANSWERS], {"python", "parquet"}),
    required_resource_keys={"warehouse"},
)
def tables(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
    """Runs, cases, submissions and their documents, with exact identities."""
    warehouse = context.resources.warehouse
    collection = warehouse.collection("sol_execbench/answers")
    with step("sol_execbench/tables") as counts:
        files = build_tables(warehouse.parts, collection) if collection else {}
        counts |= row_counts(warehouse.parts.root, files, ("runs", "rejects", "drift"))
    warehouse.state.write("sol_execbench/tables", files)
    yield from table_results(GROUP, TABLE_NAMES, warehouse.parts.root, files, {"seconds": counts["seconds"]})


def _kernels(locators: frozenset[str] | None) -> frozenset[int] | None:
    """The kernels that some answers are about."""
    if locators is None:
        return None
    return frozenset(number for locator in locators if (number := about(locator)) is not None)
