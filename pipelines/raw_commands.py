"""Commands about the raw store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.options import home_option
from pipelines.reading import json_option
from warehouse.errors import HomeError
from warehouse.home import Home

if TYPE_CHECKING:
    from warehouse.raw import RawStore


@click.group()
def raw() -> None:
    """What upstream said, as it was kept."""


@raw.command("list")
@click.option("--source", "source", help="Only this source.")
@json_option
@home_option
def list_files(source: str | None, as_json: bool, home: Path | None) -> None:
    """The files that the next ingest starts from: what is kept of each, and since when."""
    from pipelines.pages import Page, json_text, size

    store = _store(Home.at(home))
    if source is not None and source not in store.sources:
        raise click.UsageError(
            f"nothing is kept of a source {source!r}; there are {', '.join(store.sources) or 'none'}"
        )
    rows: list[dict[str, Any]] = [
        {
            "source": name,
            "locator": file.locator,
            "content_digest": file.content_digest,
            "size_bytes": file.size_bytes,
            "kept_bytes": sum(part.length for part in file.ranges) if file.ranges else file.size_bytes,
            "ranges": len(file.ranges),
            "verified": file.verified,
            "revision": file.revision,
            "fetched_at": file.fetched_at.isoformat(),
        }
        for name in ([source] if source else store.sources)
        if (collection := store.last_good(name))
        for file in sorted(collection.files, key=lambda file: file.locator)
    ]
    objects = [path.stat().st_size for path in (store.root / "objects").glob("??/*")]
    if as_json:
        click.echo(json_text({"files": rows, "objects": len(objects), "object_bytes": sum(objects)}))
        return
    page = Page()
    page.table(
        ("source", "file", "size", "kept", "as", "fetched", "digest"),
        [
            (
                row["source"],
                row["locator"],
                size(row["size_bytes"]),
                size(row["kept_bytes"]),
                f"{row['ranges']} ranges" if row["ranges"] else "whole",
                str(row["fetched_at"])[:16],
                str(row["content_digest"])[:19],
            )
            for row in rows
        ],
        numbers=("size", "kept"),
    )
    page.line(f"{len(objects)} objects, {size(sum(objects))}, are kept in all")


@raw.command()
@home_option
def verify(home: Path | None) -> None:
    """Whether every object has the digest that names it, and every fetch record all its ranges."""
    from pipelines.pages import counted, visible
    from warehouse.upkeep import damage

    store = _store(Home.at(home))
    lines = 0
    for line in damage(store):
        click.echo(visible(line))
        lines += 1
    if lines:
        raise HomeError(
            f"{store.root}: {counted(lines, 'thing')} damaged or gone; remove what is damaged and ingest again"
        )
    click.echo(f"all {sum(1 for _ in (store.root / 'objects').glob('??/*'))} objects are as they were kept")


@raw.command()
@click.option("--dry-run", is_flag=True, help="Say what would be dropped, and drop nothing.")
@home_option
def prune(dry_run: bool, home: Path | None) -> None:
    """Drop what is needed by no published snapshot, no source's last good files, and no walk under way."""
    from pipelines.pages import counted, size, visible
    from warehouse.snapshots import manifest_damage, published
    from warehouse.upkeep import damage_of_lists, drop, needed, unneeded

    where = Home.at(home)
    store = _store(where)
    with where.locked():
        # What a damaged list leaves out would be dropped.
        if damaged := next(manifest_damage(where), None) or next(damage_of_lists(store), None):
            raise HomeError(f"{damaged}; nothing is dropped while it is so: ingest again, or restore it")
        found = unneeded(store, needed(store, [snapshot.manifest["inputs"] for snapshot in published(where)]))
        for one in found:
            click.echo(visible(f"{'would drop' if dry_run else 'drops'} {one.path} ({size(one.size_bytes)})"))
        if not dry_run:
            drop(found)
    total = sum(one.size_bytes for one in found)
    click.echo(f"{counted(len(found), 'thing')}, {size(total)}, {'not needed' if dry_run else 'dropped'}")


def _store(home: Home) -> RawStore:
    from warehouse.raw import RawStore

    if not home.raw.is_dir():
        raise HomeError(f"{home.root}: nothing is kept there yet; run 'kernelmart ingest' with this home first")
    return RawStore(home.raw)


COMMANDS = (raw,)
