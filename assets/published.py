"""What all sources come together in: ranks, the draft of a snapshot, its checks, and the snapshot."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa

from assets import checks, ranking
from assets.kernelbot import assets as kernelbot
from assets.kernelbot import build as kernelbot_build
from assets.kernelbot import normalise as kernelbot_normalise
from assets.kernelbot import read as kernelbot_read
from assets.kernelbot.facts import facts_revision
from assets.sol_execbench import assets as sol_execbench
from assets.sol_execbench import build as sol_execbench_build
from assets.sol_execbench import normalise as sol_normalise
from assets.tables import step, table_results, table_specs
from warehouse import drafts, snapshots
from warehouse.contracts import SCHEMA_VERSION, TABLES
from warehouse.errors import SnapshotError, UnreadableError
from warehouse.raw import Collection
from warehouse.version import code_version

GROUP = "warehouse"
# A part that no ingest has used for so long is removed; it can be made anew from the raw store.
PARTS_KEPT_DAYS = 7
DRAFT = dg.AssetKey([GROUP, "draft"])
# State of the last stage before the tables, and terms, of each source.
_SOURCES = {
    "kernelbot/rows": kernelbot_build.TERMS,
    "sol_execbench/answers": sol_execbench_build.TERMS,
}
# Versions of what makes the tables: a snapshot made by others is made anew.
_VERSIONS = (kernelbot_read.PARSER, kernelbot_normalise.VERSION, sol_normalise.VERSION, ranking.VERSION)
_TABLE_STATES = ("kernelbot/tables", "sol_execbench/tables")
_TABLES = [
    dg.AssetKey([group, name])
    for group, names in (
        (kernelbot.GROUP, kernelbot_build.TABLE_NAMES),
        (sol_execbench.GROUP, sol_execbench_build.TABLE_NAMES),
    )
    for name in names
]


@dg.multi_asset(
    name="ranking",
    specs=table_specs(GROUP, (*ranking.TABLE_NAMES, "movements"), _TABLES, {"duckdb"}),
    required_resource_keys={"warehouse", "request"},
)
def ranked(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
    """Who stands where, under the ranking policy and as the platforms show it."""
    warehouse, policy = context.resources.warehouse, context.resources.request.policy
    parts = _parts(warehouse)
    if not parts["runs"]:
        raise UnreadableError(f"{warehouse.home.root}: no source has any run; name a folder or a source that has")
    previous = snapshots.sound(warehouse.home)
    with step("warehouse/ranking"):
        made = ranking.build_ranks(warehouse.parts, parts, policy, warehouse.home.temporary)
        made["movements"] = ranking.build_movements(
            warehouse.parts, {**parts, **made}, previous, policy, warehouse.home.temporary
        )
    warehouse.state.write("warehouse/ranking", made)
    yield from table_results(GROUP, made, warehouse.parts.root, made)


@dg.asset(
    key=DRAFT,
    deps=[dg.AssetKey([GROUP, name]) for name in (*ranking.TABLE_NAMES, "movements")],
    group_name=GROUP,
    kinds={"duckdb", "parquet"},
    required_resource_keys={"warehouse", "request"},
)
def draft(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The next snapshot, built aside; none on a night when nothing changed."""
    warehouse, policy = context.resources.warehouse, context.resources.request.policy
    collections = [collection for name in _SOURCES if (collection := warehouse.collection(name))]
    inputs = {
        collection.source: {
            "revision": collection.revision,
            "stale": bool(collection.stale),
            "files": collection.inputs(),
        }
        for collection in collections
    }
    key = drafts.inputs_key([inputs, policy, facts_revision(), SCHEMA_VERSION, code_version(), *_VERSIONS])
    snapshots.discard_draft(warehouse.home)
    if lost := set(warehouse.home.read_status().get("sources", {})) - inputs.keys():
        raise SnapshotError(
            f"{warehouse.home.raw}: nothing is left of {', '.join(sorted(lost))}, which the latest snapshot has; "
            "ingest that source again"
        )
    warehouse.state.write("warehouse/inputs_key", key)
    sound = snapshots.sound(warehouse.home)
    if sound and key in _seen_keys(warehouse, sound):
        return dg.MaterializeResult(metadata={"changed": False})
    parts = {**_parts(warehouse), **warehouse.state.read("warehouse/ranking")}
    part = key.removeprefix("sha256:")[:32]
    with warehouse.parts.making("sources", part, {}) as writer:
        writer.write("sources", _sources(warehouse, collections), TABLES["sources"].arrow_schema())
    parts["sources"] = [f"sources/{part}/sources.parquet"]
    about = {
        "ranking_policy": policy,
        "facts_revision": facts_revision(),
        "code_version": code_version(),
        "inputs": inputs,
        "inputs_key": key,
    }
    with step("warehouse/draft") as counts:
        paths = {
            name: [warehouse.parts.root / file for file in files] for name, files in parts.items() if name in TABLES
        }
        built = drafts.build(warehouse.home, paths, about)
        manifest = built.manifest
        counts["runs"] = manifest["tables"]["runs"]["rows"]
    changed = sound is None or sound.manifest["content_digest"] != manifest["content_digest"]
    if not changed:
        snapshots.discard_draft(warehouse.home)
    rows = {f"{name}_rows": table["rows"] for name, table in manifest["tables"].items()}
    return dg.MaterializeResult(metadata={"changed": changed, "content_digest": manifest["content_digest"], **rows})


@dg.asset(
    key=dg.AssetKey([GROUP, "snapshot"]),
    deps=[DRAFT],
    group_name=GROUP,
    kinds={"duckdb", "parquet"},
    required_resource_keys={"warehouse"},
)
def snapshot(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The latest snapshot: the draft, checked once more and made the latest in one step."""
    warehouse = context.resources.warehouse
    home = warehouse.home
    built = snapshots.draft_of(home)
    if built:
        checks.require(built)
    collections = [collection for name in _SOURCES if (collection := warehouse.collection(name))]
    gone = [line for collection in collections for line in _gone(warehouse, collection)]
    # Before the pointer moves: an ingest that dies in between must not bring older files back the next time.
    for collection in collections:
        warehouse.raw.remember(collection)
    published = snapshots.publish(home, built) if built else snapshots.required(home)
    warehouse.state.write("outcome", {
        "published": built is not None,
        "snapshot_id": published.snapshot_id,
        "stale": [line for collection in collections for line in collection.stale],
        "gone": gone,
    })  # fmt: skip
    _write_status(warehouse, collections, published)
    warehouse.parts.prune(PARTS_KEPT_DAYS)
    return dg.MaterializeResult(metadata={"snapshot_id": published.snapshot_id, "folder": str(published.folder)})


def _check(check: checks.Check) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=DRAFT,
        name=check.name,
        description=check.description,
        blocking=check.blocking,
        required_resource_keys={"warehouse"},
    )
    def _run(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        warehouse = context.resources.warehouse
        built = snapshots.draft_of(warehouse.home)
        if built is None:
            return dg.AssetCheckResult(passed=True, metadata={"checked": False})
        with built.open() as connection:
            found = checks.run(connection, check, warehouse.raw)
        severity = dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN
        return dg.AssetCheckResult(passed=not found, severity=severity, metadata={"found": "\n".join(found)})

    return _run


draft_checks = [_check(check) for check in checks.all_checks()]


def _gone(warehouse: Any, collection: Collection) -> list[str]:
    """One line for each file that the source had at the last ingest and no longer has."""
    last_good = warehouse.raw.last_good(collection.source)
    left = {file.locator for file in last_good.files} - {file.locator for file in collection.files} if last_good else ()
    return [f"{collection.source} no longer has {locator}; its rows have left the tables" for locator in sorted(left)]


def _seen_keys(warehouse: Any, latest: snapshots.Snapshot) -> set[str]:
    """Keys of inputs that gave the latest snapshot's content: its own, and the last ingest's if that left it there."""
    status = warehouse.home.read_status()
    keys = {latest.manifest["inputs_key"]}
    return keys | {status["inputs_key"]} if status.get("snapshot_id") == latest.snapshot_id else keys


def _parts(warehouse: Any) -> dict[str, list[str]]:
    """Files of every table of all sources together."""
    parts: dict[str, list[str]] = {name: [] for name in (*TABLES, "scores")}
    for state in _TABLE_STATES:
        for name, files in (warehouse.state.read(state) or {}).items():
            parts[name] += files
    return parts


def _sources(warehouse: Any, collections: list[Collection]) -> pa.Table:
    terms = {row["source"]: row for row in _SOURCES.values()}
    known = warehouse.home.read_status().get("sources", {})
    rows = []
    for collection in collections:
        succeeded = max(file.fetched_at for file in collection.files)
        if collection.stale and (earlier := known.get(collection.source, {}).get("last_success_at")):
            succeeded = datetime.fromisoformat(earlier)
        rows.append({**terms[collection.source], "stale": bool(collection.stale), "last_success_at": succeeded})
    return pa.Table.from_pylist(rows, schema=TABLES["sources"].arrow_schema())


def _write_status(warehouse: Any, collections: list[Collection], published: snapshots.Snapshot) -> None:
    """Say what this ingest saw; freshness is of the last completed look, not of the last snapshot."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    known = warehouse.home.read_status().get("sources", {})
    sources = {}
    for collection in collections:
        before = known.get(collection.source, {})
        asked = warehouse.state.read(f"asked/{collection.source}")
        same = before.get("files") == collection.inputs()
        sources[collection.source] = {
            "revision": collection.revision,
            "last_success_at": now if asked and not collection.stale else before.get("last_success_at"),
            "last_changed_at": before.get("last_changed_at") if same else now,
            "stale": bool(collection.stale),
            "stale_because": list(collection.stale),
            "files": collection.inputs(),
        }
    warehouse.home.write_status(
        {
            "checked_at": now,
            "snapshot_id": published.snapshot_id,
            "inputs_key": warehouse.state.read("warehouse/inputs_key"),
            "sources": sources,
        }
    )
