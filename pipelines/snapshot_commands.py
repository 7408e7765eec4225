"""Commands over the snapshots of a home: which there are, whether they are whole, how they differ, and what becomes of
them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.options import home_option
from pipelines.reading import json_option
from warehouse.errors import SnapshotError
from warehouse.home import Home

if TYPE_CHECKING:
    from warehouse.snapshots import Snapshot


@click.group()
def snapshots() -> None:
    """Published snapshots."""


@snapshots.command("list")
@json_option
@home_option
def list_snapshots(as_json: bool, home: Path | None) -> None:
    """Snapshots with their size, age, rows and inputs, newest first, and whether they were withdrawn."""
    from pipelines.pages import Page, duration, json_text, size
    from warehouse.snapshots import entries_of, latest, published

    where = Home.at(home)
    newest = latest(where)
    withdrawn = {entry.snapshot_id: entry.withdrawn for entry in entries_of(where)}
    found = []
    for snapshot in reversed(published(where)):
        gone = withdrawn.get(snapshot.folder.name)
        found.append(
            {
                "snapshot_id": snapshot.folder.name,
                "latest": snapshot == newest,
                "withdrawn": {"at": gone.at, "reason": gone.reason} if gone else None,
                **_described(snapshot),
            }
        )
    if as_json:
        click.echo(json_text({"snapshots": found}))
        return
    if not found:
        raise SnapshotError(f"{where.root}: there is no snapshot yet; run 'kernelmart ingest' with this home first")
    now = datetime.now(UTC)
    rows = []
    for one in found:
        if "damaged" in one:
            rows.append((one["snapshot_id"], _state(one), "", "", "", "", ""))
            continue
        age = duration((now - datetime.fromisoformat(one["created_at"])).total_seconds())
        inputs = "; ".join(_input(name, source) for name, source in one["inputs"].items())
        counts = one["rows"]
        rows.append(
            (
                one["snapshot_id"],
                _state(one),
                size(one["size_bytes"]),
                age,
                inputs,
                sum(counts.values()),
                counts["runs"],
            )
        )
    columns = ("snapshot", "", "size", "age", "inputs", "rows", "runs")
    Page().table(columns, rows, numbers=("size", "rows", "runs"))


@snapshots.command()
@click.argument("snapshot_ids", metavar="[SNAPSHOT]...", nargs=-1)
@click.option("--all", "every_one", is_flag=True, help="Every snapshot that there is.")
@home_option
def verify(snapshot_ids: tuple[str, ...], every_one: bool, home: Path | None) -> None:
    """Whether every file of a snapshot is the one that was published; the latest unless named."""
    from pipelines.pages import counted, visible
    from warehouse.snapshots import damage_beside, damage_of, named, published, required

    if every_one and snapshot_ids:
        raise click.UsageError("name snapshots, or take --all of them")
    where = Home.at(home)
    beside = list(damage_beside(where))
    for line in beside:
        click.echo(visible(line))
    damaged = len(beside)
    wanted = published(where) if every_one else [named(where, name) for name in snapshot_ids]
    for snapshot in wanted or [required(where)]:
        lines = list(damage_of(where, snapshot))
        for line in lines:
            click.echo(visible(line))
        if not lines:
            click.echo(f"{snapshot.folder.name}: all {len(snapshot.manifest['files'])} files are as published")
        damaged += len(lines)
    if damaged:
        raise SnapshotError(f"{where.root}: {counted(damaged, 'published file')} damaged; ingest again, or restore")


@snapshots.command()
@click.option("--keep-daily", type=click.IntRange(min=0), default=14, show_default=True, help="Days to keep one of.")
@click.option("--keep-monthly", type=click.IntRange(min=0), default=12, show_default=True, help="Months likewise.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@home_option
def prune(keep_daily: int, keep_monthly: int, dry_run: bool, home: Path | None) -> None:
    """Remove old snapshots.

    The latest stays, and so do those that were the latest within 48 hours, which somebody may still be reading, and the
    newest of each of the last days and months that have one. Withdrawn ones are not kept for their day or month.
    """
    from pipelines.pages import counted
    from warehouse.life import prune as prune_snapshots
    from warehouse.snapshots import published, required

    where = Home.at(home)
    required(where)
    with where.locked():
        removed = prune_snapshots(where, daily=keep_daily, monthly=keep_monthly, now=datetime.now(UTC), dry=dry_run)
        left = len(published(where)) - (len(removed) if dry_run else 0)
    for snapshot_id in removed:
        click.echo(f"{'would remove' if dry_run else 'removed'}: snapshot {snapshot_id}")
    click.echo(f"{'would keep' if dry_run else 'kept'}: {counted(left, 'snapshot')}")


@snapshots.command()
@click.option("--to", "target", metavar="SNAPSHOT", help="Go back to this one [default: the last sound one before].")
@click.option("--reason", required=True, help="Why; it is told to whoever would publish the same again.")
@home_option
def rollback(target: str | None, reason: str, home: Path | None) -> None:
    """Make an earlier snapshot the latest again, and withdraw those that came after it.

    What is withdrawn stays readable until it is pruned; an ingest publishes nothing of the same content again unless it
    is forced to.
    """
    from warehouse.life import roll_back
    from warehouse.snapshots import required

    if not reason.strip():
        raise click.UsageError("say why with --reason")
    where = Home.at(home)
    required(where)
    with where.locked():
        done = roll_back(where, reason.strip(), target)
    for snapshot_id in done.withdrawn:
        click.echo(f"withdrawn: snapshot {snapshot_id}")
    click.echo(f"latest: snapshot {done.snapshot.folder.name}")


@snapshots.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.option("--limit", type=click.IntRange(min=1), help="Movements to show of a board [default: 10; all in JSON].")
@json_option
@home_option
def diff(first: str, second: str | None, limit: int | None, as_json: bool, home: Path | None) -> None:
    """Who entered, left, rose or fell from A to B, which records fell, and what was changed or withdrawn.

    A and B are snapshots' ids or the beginnings of them; B is the latest unless named.
    """
    from pipelines.pages import Page, json_text
    from pipelines.snapshot_diff import MOVEMENTS_SHOWN, diff_page, difference
    from warehouse.snapshots import named, required

    where = Home.at(home)
    before, after = named(where, first), named(where, second) if second is not None else required(where)
    found = difference(before, after, limit if as_json else limit or MOVEMENTS_SHOWN)
    if as_json:
        click.echo(json_text(found))
    else:
        diff_page(Page(), found)


def _described(snapshot: Snapshot) -> dict[str, Any]:
    """What a snapshot's manifest says; `damaged` where it cannot be read."""
    try:
        manifest = snapshot.manifest
    except SnapshotError:
        return {"damaged": True}
    return {
        "created_at": manifest["created_at"],
        "content_digest": manifest["content_digest"],
        "size_bytes": sum(file["size_bytes"] for file in manifest["files"].values()),
        "rows": {name: table["rows"] for name, table in manifest["tables"].items()},
        "inputs": {
            name: {"revision": source.get("revision"), "files": len(source.get("files", ()))}
            for name, source in manifest["inputs"].items()
        },
    }


def _state(row: dict[str, Any]) -> str:
    states = ["latest"] if row["latest"] else []
    if row["withdrawn"]:
        states.append(f"withdrawn: {row['withdrawn']['reason']}")
    if "damaged" in row:
        states.append("its manifest is damaged")
    return ", ".join(states)


def _input(name: str, source: dict[str, Any]) -> str:
    from pipelines.pages import counted

    at = f" at {source['revision'][:12]}" if source["revision"] else ""
    return f"{name}{at}, {counted(source['files'], 'file')}"


COMMANDS = (snapshots,)
