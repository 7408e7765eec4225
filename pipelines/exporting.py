"""The command that makes a folder of tables in another form."""

from __future__ import annotations

from pathlib import Path

import click

from pipelines.options import home_option
from warehouse.errors import SnapshotError
from warehouse.home import Home

CATALOGUE = "kernelindex"


@click.command()
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice([CATALOGUE, "jsonl", "csv", "arrow"]),
    required=True,
    help="Form of the files.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder to make; there must be nothing in its place.",
)
@click.option("--snapshot", "snapshot_id", help="A snapshot's id or its beginning [default: the latest].")
@home_option
def export(tables: tuple[str, ...], form: str, folder: Path, snapshot_id: str | None, home: Path | None) -> None:
    """Write tables for others: those named, or all; with --format kernelindex, the registry's catalogue.

    Rows of sources that may not be republished stay out. The folder has ATTRIBUTION.md with the terms of the others,
    and appears whole or not at all.
    """
    from assets import catalogue
    from pipelines.pages import counted, visible
    from warehouse import exports
    from warehouse.contracts import TABLES
    from warehouse.snapshots import damage_of, named, required

    if unknown := [table for table in tables if table not in TABLES]:
        raise click.UsageError(f"there is no table {visible(unknown[0])!r}; there are {', '.join(TABLES)}")
    if form == CATALOGUE and tables:
        raise click.UsageError("the catalogue is exported whole; name no table, or another --format")
    where = Home.at(home)
    snapshot = named(where, snapshot_id) if snapshot_id else required(where)
    if damage := next(damage_of(where, snapshot), None):
        raise SnapshotError(f"{damage}; nothing was exported; ingest again, or name another with --snapshot")
    write = catalogue.write if form == CATALOGUE else exports.write_tables(form, tables or tuple(TABLES))
    made = exports.export(snapshot, folder.absolute(), form, write)
    for source in made.left_out:
        click.echo(f"left out: {visible(source)} may not be republished", err=True)
    rows = counted(sum(made.rows.values()), "row")
    click.echo(f"exported: {visible(str(made.folder))}: {rows} of snapshot {snapshot.folder.name}")


COMMANDS = (export,)
