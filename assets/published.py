"""What all sources come together in: ranks, the draft of a snapshot, its checks, and the snapshot."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa

from assets import checks, ranking, shrinkage
from assets.kernelbot import assets as kernelbot
from assets.kernelbot import build as kernelbot_build
from assets.kernelbot import normalise as kernelbot_normalise
from assets.kernelbot import read as kernelbot_read
from assets.kernelbot import terms as kernelbot_terms
from assets.kernelbot.facts import facts_revision
from assets.kernelbot.source_tables import versions as source_versions
from assets.pictures import pictures
from assets.sol_execbench import assets as sol_execbench
from assets.sol_execbench import build as sol_execbench_build
from assets.sol_execbench import normalise as sol_normalise
from assets.sol_execbench import terms as sol_execbench_terms
from assets.sol_execbench.pull import oldest_walk
from assets.tables import log, row_counts, step, table_results, table_specs
from warehouse import drafts, snapshots
from warehouse.contracts import PARQUET_ONLY, SCHEMA_VERSION, TABLES
from warehouse.database import memory_for, with_enough_memory
from warehouse.elsewhere import publish_to
from warehouse.errors import SnapshotError, UnreadableError
from warehouse.raw import Collection
from warehouse.version import code_version

GROUP = "warehouse"
# A part that no ingest has used for so long is removed; it can be made anew from the raw store.
PARTS_KEPT_DAYS = 7
DRAFT = dg.AssetKey([GROUP, "draft"])
SNAPSHOT = dg.AssetKey([GROUP, "snapshot"])
# State of the last stage before the tables, and terms, of each source.
_SOURCES = {
    "kernelbot/rows": kernelbot_terms.TERMS,
    "sol_execbench/answers": sol_execbench_terms.TERMS,
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
    warehouse, request = context.resources.warehouse, context.resources.request
    parts, policy = _parts(warehouse), request.policy
    if not parts["runs"]:
        raise UnreadableError(f"{warehouse.home.root}: no source has any run; name a folder or a source that has")
    previous, key = snapshots.sound(warehouse.home), _inputs(_collections(warehouse), request)[1]
    with step("warehouse/ranking") as counts:
        made = ranking.build_ranks(warehouse.parts, parts, policy, warehouse.home.temporary)
        # Between two snapshots of the same inputs nothing moves, and to find that out all ranks would be compared.
        made["movements"] = (
            []
            if _unchanged(warehouse, request, previous, key)
            else ranking.build_movements(warehouse.parts, {**parts, **made}, previous, policy, warehouse.home.temporary)
        )
        counts |= row_counts(warehouse.parts.root, made, ("ranks", "cohorts", "records"))
    warehouse.state.write("warehouse/ranking", made)
    yield from table_results(GROUP, made, warehouse.parts.root, made, {"seconds": counts["seconds"]})


@dg.asset(
    key=DRAFT,
    deps=[dg.AssetKey([GROUP, name]) for name in (*ranking.TABLE_NAMES, "movements")],
    group_name=GROUP,
    kinds={"duckdb", "parquet"},
    required_resource_keys={"warehouse", "request"},
)
def draft(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The next snapshot, built aside; none on a night when nothing changed."""
    warehouse, request = context.resources.warehouse, context.resources.request
    policy = request.policy
    collections = _collections(warehouse)
    inputs, key = _inputs(collections, request)
    snapshots.discard_draft(warehouse.home)
    if lost := set(warehouse.home.read_status().get("sources", {})) - inputs.keys():
        raise SnapshotError(
            f"{warehouse.home.raw}: nothing is left of {', '.join(sorted(lost))}, which the latest snapshot has; "
            "ingest that source again"
        )
    warehouse.state.write("warehouse/inputs_key", key)
    warehouse.state.write("warehouse/withheld", [])
    warehouse.state.write("warehouse/checked", None)
    sound = snapshots.sound(warehouse.home)
    if sound and _unchanged(warehouse, request, sound, key):
        # What was withheld the last time still is.
        if key != sound.manifest["inputs_key"]:
            warehouse.state.write("warehouse/withheld", warehouse.home.read_status().get("withheld", []))
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
            name: [warehouse.parts.root / file for file in files]
            for name, files in parts.items()
            if name in TABLES or name in PARQUET_ONLY
        }
        built = drafts.build(warehouse.home, paths, about)
        manifest = built.manifest
        counts |= {name: manifest["tables"][name]["rows"] for name in ("runs", "rejects", "drift")}
        counts["bytes"] = sum(file["size_bytes"] for file in manifest["files"].values())
    changed = sound is None or sound.manifest["content_digest"] != manifest["content_digest"]
    withdrawn = snapshots.withdrawn_reason(warehouse.home, built)
    if changed and withdrawn is not None and not request.force:
        changed = False
        line = f"the newest content was withdrawn ({withdrawn}); 'kernelmart ingest --force' publishes it all the same"
        warehouse.state.write("warehouse/withheld", [line])
    if not changed:
        snapshots.discard_draft(warehouse.home)
    rows = {f"{name}_rows": table["rows"] for name, table in manifest["tables"].items()}
    about = {"changed": changed, "content_digest": manifest["content_digest"]}
    return dg.MaterializeResult(metadata={**about, "bytes": counts["bytes"], "seconds": counts["seconds"], **rows})


@dg.asset(
    key=SNAPSHOT,
    deps=[DRAFT],
    group_name=GROUP,
    kinds={"duckdb", "parquet"},
    required_resource_keys={"warehouse", "request"},
)
def snapshot(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The latest snapshot: the draft, checked once more and made the latest in one step."""
    warehouse, request = context.resources.warehouse, context.resources.request
    home, replayed = warehouse.home, request.replay is not None
    built = snapshots.draft_of(home)
    collections = _collections(warehouse)
    if built and built.manifest["inputs_key"] != _inputs(collections, request)[1]:
        raise SnapshotError(f"{built.folder}: this draft is not of what the warehouse has now; run the ingest again")
    # Whoever makes this asset alone has not had the checks run.
    if built and warehouse.state.read("warehouse/checked") != built.manifest_sha256:
        checks.require(built)
        if not request.takes_loss:
            shrinkage.require_no_losses(snapshots.sound(home), built)
    gone: list[str] = []
    # What was read once more is no news of the sources.
    if not replayed:
        gone = [line for collection in collections for line in _gone(warehouse, collection)]
        # Before the pointer moves: an ingest that dies in between must not bring older files back the next time.
        for collection in collections:
            warehouse.raw.remember(collection)
    stale = [line for collection in collections for line in collection.stale]
    with step("warehouse/snapshot") as counts:
        published = snapshots.publish(home, built, forced=request.force) if built else snapshots.required(home)
        counts |= {"published": int(built is not None), "stale": len(stale), "gone": len(gone)}
    warehouse.state.write("outcome", {
        "published": built is not None,
        "snapshot_id": published.snapshot_id,
        "stale": stale,
        "gone": gone,
        "withheld": warehouse.state.read("warehouse/withheld") or [],
    })  # fmt: skip
    _write_status(warehouse, [] if replayed else collections, published)
    warehouse.parts.prune(PARTS_KEPT_DAYS)
    return dg.MaterializeResult(metadata=_looked_at(published, stale, new=built is not None))


@dg.asset(
    key=dg.AssetKey([GROUP, "elsewhere"]),
    deps=[SNAPSHOT],
    group_name=GROUP,
    kinds={"duckdb", "parquet"},
    required_resource_keys={"warehouse"},
)
def elsewhere(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    """The latest snapshot in the store that `KERNELMART_PUBLISH_URL` names; nothing where it names none."""
    url = os.environ.get("KERNELMART_PUBLISH_URL")
    if not url:
        return dg.MaterializeResult(metadata={"published": False})
    with step("warehouse/elsewhere") as counts:
        publication = publish_to(url, snapshots.required(context.resources.warehouse.home))
        counts["sent_bytes"] = publication.sent_bytes
    return dg.MaterializeResult(metadata={"published": True, "address": publication.address})


@dg.multi_asset_check(
    name="draft_checks",
    specs=[
        dg.AssetCheckSpec(check.name, asset=DRAFT, description=check.description, blocking=check.blocking)
        for check in checks.all_checks()
    ]
    + [dg.AssetCheckSpec(shrinkage.NAME, asset=DRAFT, description=shrinkage.DESCRIPTION, blocking=True)],
    required_resource_keys={"warehouse", "request"},
)
def _check_draft(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
    """All checks of the draft, in one step: opening a snapshot for each would take longer than they do."""
    warehouse = context.resources.warehouse
    built = snapshots.draft_of(warehouse.home)
    if built is None:
        for check in checks.all_checks():
            yield dg.AssetCheckResult(check_name=check.name, passed=True, metadata={"checked": False})
        yield dg.AssetCheckResult(check_name=shrinkage.NAME, passed=True, metadata={"checked": False})
        return
    refusals: list[str] = []

    def run(memory: int, threads: int | None) -> list[tuple[checks.Check, list[str]]]:
        with built.open(memory, threads) as connection:
            return [(check, checks.run(connection, check, warehouse.raw)) for check in checks.all_checks()]

    with step("warehouse/checks") as counts:
        for check, found in with_enough_memory(memory_for(built.manifest["tables"]["runs"]["rows"]), run):
            if check.blocking and found:
                refusals.append(checks.refusal(check, found))
            severity = dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN
            yield dg.AssetCheckResult(
                check_name=check.name, passed=not found, severity=severity, metadata={"found": "\n".join(found)}
            )
            counts["found"] = counts.get("found", 0) + len(found)
        before, accepted = snapshots.sound(warehouse.home), context.resources.request.takes_loss
        lost = shrinkage.losses(before, built) if before else []
        if lost and not accepted:
            refusals.append(shrinkage.refusal(lost))
        yield dg.AssetCheckResult(
            check_name=shrinkage.NAME,
            passed=accepted or not lost,
            metadata={"found": "\n".join(lost), "accepted": accepted},
        )
        counts["lost"] = len(lost)
    warehouse.state.write("warehouse/checked", None if refusals else built.manifest_sha256)
    if refusals:
        # Dagster's own words for a check that blocks say nothing of what was found.
        raise SnapshotError(refusals[0])


draft_checks = [_check_draft]


def _looked_at(published: snapshots.Snapshot, stale: list[str], *, new: bool) -> dict[str, Any]:
    """What one wants to see of the latest snapshot on its asset's page."""
    manifest = published.manifest
    told: dict[str, Any] = {
        "snapshot_id": published.snapshot_id,
        "published": new,
        "bytes": sum(file["size_bytes"] for file in manifest["files"].values()),
        **{f"{name}_rows": manifest["tables"][name]["rows"] for name in ("runs", "submissions", "rejects", "drift")},
        "stale": "\n".join(stale),
    }
    if new:
        try:
            told |= {name: dg.MetadataValue.md(text) for name, text in pictures(published).items()}
        except Exception as error:
            # The snapshot is published: no picture is worth a failure.
            log.warning("no pictures of %s: %s", published.snapshot_id, type(error).__name__)
    return told


def _gone(warehouse: Any, collection: Collection) -> list[str]:
    """One line for each file or kernel that the source had at the last ingest and no longer has.

    A kernel goes by its definition: pages and leaderboards come and go with what is on them.
    """
    last_good = warehouse.raw.last_good(collection.source)
    left = {file.locator for file in last_good.files} - {file.locator for file in collection.files} if last_good else ()
    told = sorted(locator for locator in left if not locator.startswith(shrinkage.PASSING))
    return [f"{collection.source} no longer has {locator}; its rows have left the tables" for locator in told]


def _unchanged(warehouse: Any, request: Any, latest: snapshots.Snapshot | None, key: str) -> bool:
    """Whether the latest snapshot, if it is sound, is of inputs with this key, and no new one is forced."""
    return latest is not None and key in _seen_keys(warehouse, latest) and not request.force


def _seen_keys(warehouse: Any, latest: snapshots.Snapshot) -> set[str]:
    """Keys of inputs that gave the latest snapshot's content: its own, and the last ingest's if that left it there."""
    status = warehouse.home.read_status()
    keys = {latest.manifest["inputs_key"]}
    return keys | {status["inputs_key"]} if status.get("snapshot_id") == latest.snapshot_id else keys


def _collections(warehouse: Any) -> list[Collection]:
    return [collection for name in _SOURCES if (collection := warehouse.collection(name))]


def _inputs(collections: list[Collection], request: Any) -> tuple[dict[str, Any], str]:
    """What a snapshot of these collections is made from, as its manifest has it, and the key of that."""
    inputs = {
        collection.source: {
            "revision": collection.revision,
            "stale": bool(collection.stale),
            "files": collection.inputs(),
        }
        for collection in collections
    }
    made_by = [request.policy, request.code, facts_revision(), SCHEMA_VERSION, code_version(), *_VERSIONS]
    return inputs, drafts.inputs_key([inputs, *made_by, *source_versions()])


def _parts(warehouse: Any) -> dict[str, list[str]]:
    """Files of every table of all sources together."""
    parts: dict[str, list[str]] = {name: [] for name in (*TABLES, *PARQUET_ONLY, "scores")}
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
    last = warehouse.home.read_status()
    known = last.get("sources", {})
    sources = {} if collections else known
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
        if collection.source == sol_execbench_terms.SOURCE and (oldest := oldest_walk(warehouse.raw)):
            sources[collection.source]["oldest_walk_at"] = oldest.isoformat(timespec="seconds")
    warehouse.home.write_status(
        {
            "checked_at": now if collections else last.get("checked_at", now),
            "snapshot_id": published.snapshot_id,
            "withheld": warehouse.state.read("warehouse/withheld") or [],
            "inputs_key": warehouse.state.read("warehouse/inputs_key"),
            "sources": sources,
        }
    )
