"""Commands that look at a home and its snapshots: SQL, paths, state, and whether all is as it should be."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pipelines.options import home_option
from pipelines.reading import json_option, opened
from warehouse.errors import KernelmartError, SnapshotError
from warehouse.home import Home

# A terminal takes no more; files take all.
ROWS_SHOWN = 1000
# Of rows that are shown one below the other.
RECORDS_SHOWN = 100
# A wider table would be folded beyond reading: its rows are shown one below the other.
COLUMNS_SHOWN = 12
DATABASE = "duckdb"


@click.command()
@click.argument("statement")
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True, help="Form."
)
@home_option
def sql(statement: str, form: str, home: Path | None) -> None:
    """Ask the latest snapshot; it is open for reading alone, and reaches nothing outside itself."""
    import duckdb

    from pipelines.pages import visible

    with opened(home) as connection:
        try:
            if len(connection.extract_statements(statement)) != 1:
                raise KernelmartError("one statement is wanted; ask several one by one")
            cursor = connection.execute(statement)
            if cursor is None or not cursor.description:
                return
            columns = _unique([column[0] for column in cursor.description])
            if form == "table":
                _print_table(columns, cursor.fetchmany(ROWS_SHOWN + 1))
                return
            batches = iter(lambda: cursor.fetchmany(10_000), [])
            rows = (row for batch in batches for row in batch)
            (_print_csv if form == "csv" else _print_json)(columns, rows)
        except duckdb.Error as error:
            message = str(error).partition("\n\nLINE ")[0]
            raise KernelmartError(visible(" ".join(message.split()), 1000)) from error


@click.command()
@click.argument("table", required=False)
@home_option
def path(table: str | None, home: Path | None) -> None:
    """Where the latest snapshot lies: its folder; TABLE's Parquet files; or, for "duckdb", its DuckDB file."""
    from warehouse.contracts import TABLES
    from warehouse.snapshots import required

    snapshot = required(Home.at(home))
    if table is None:
        click.echo(str(snapshot.folder))
    elif table == DATABASE:
        click.echo(str(snapshot.database))
    elif table in TABLES or snapshot.parquet(table):
        click.echo(str(snapshot.folder / "parquet" / table / "*.parquet"))
    else:
        raise click.UsageError(f"there is no table {table!r}; there are {DATABASE}, {', '.join(TABLES)}")


@click.command()
@json_option
@home_option
def status(as_json: bool, home: Path | None) -> None:
    """What the last ingest saw, and the latest snapshot."""
    from pipelines.pages import Page, json_text
    from warehouse.snapshots import latest

    where = Home.at(home)
    seen, snapshot = where.read_status(), latest(where)
    if not seen and snapshot is None:
        raise SnapshotError(f"{where.root}: nothing has been ingested yet; run 'kernelmart ingest' first")
    manifest = snapshot.manifest if snapshot else None
    published = {
        name: manifest[name]
        for name in ("snapshot_id", "created_at", "content_digest", "schema_version", "ranking_policy", "code_version")
    } if manifest else None  # fmt: skip
    rows = {name: table["rows"] for name, table in manifest["tables"].items()} if manifest else {}
    if as_json:
        click.echo(json_text({"home": str(where.root), **seen, "snapshot": published, "rows": rows}))
        return
    page = Page()
    page.fields(
        [
            ("Home", str(where.root)),
            ("Checked", _moment(seen.get("checked_at"))),
            *((name.replace("_", " ").capitalize(), value) for name, value in (published or {}).items()),
            ("Rows", ", ".join(f"{name} {count}" for name, count in rows.items() if count)),
        ]
    )
    for source, state in seen.get("sources", {}).items():
        page.heading(source)
        page.fields(
            [
                ("State", "stale" if state["stale"] else "fresh"),
                ("Because", "; ".join(state.get("stale_because", []))),
                ("Revision", state.get("revision")),
                ("Files", len(state.get("files", []))),
                ("Last success", _moment(state.get("last_success_at"))),
                ("Last change", _moment(state.get("last_changed_at"))),
            ]
        )


@click.group()
def snapshots() -> None:
    """Published snapshots."""


@snapshots.command("list")
@json_option
@home_option
def list_snapshots(as_json: bool, home: Path | None) -> None:
    """Snapshots with their size, age and rows, newest first."""
    from pipelines.pages import Page, json_text, size
    from warehouse.snapshots import latest, published

    where = Home.at(home)
    newest = latest(where)
    found = [
        {
            "snapshot_id": manifest["snapshot_id"],
            "latest": newest is not None and snapshot.folder == newest.folder,
            "created_at": manifest["created_at"],
            "content_digest": manifest["content_digest"],
            "size_bytes": sum(file["size_bytes"] for file in manifest["files"].values()),
            "rows": {name: table["rows"] for name, table in manifest["tables"].items()},
        }
        for snapshot in reversed(published(where))
        if not snapshot.folder.is_symlink()
        for manifest in [snapshot.manifest]
    ]
    if as_json:
        click.echo(json_text({"snapshots": found}))
        return
    if not found:
        raise SnapshotError(f"{where.root}: there is no snapshot yet; run 'kernelmart ingest' with this home first")
    Page().table(
        ("snapshot", "", "size", "age", "rows", "runs"),
        [
            (
                row["snapshot_id"],
                "latest" if row["latest"] else "",
                size(row["size_bytes"]),
                _age(row["created_at"]),
                sum(row["rows"].values()),
                row["rows"].get("runs"),
            )
            for row in found
        ],
        numbers=("size", "rows", "runs"),
    )


@snapshots.command()
@click.argument("snapshot_ids", metavar="[SNAPSHOT]...", nargs=-1)
@home_option
def verify(snapshot_ids: tuple[str, ...], home: Path | None) -> None:
    """Whether every file of a snapshot is the one that was published; the latest unless named."""
    from pipelines.pages import counted, visible
    from warehouse.snapshots import damage_of, named, required

    where = Home.at(home)
    damaged = 0
    for snapshot in [named(where, name) for name in snapshot_ids] or [required(where)]:
        lines = list(damage_of(where, snapshot))
        for line in lines:
            click.echo(visible(line))
        if not lines:
            click.echo(f"{snapshot.folder.name}: all {len(snapshot.manifest['files'])} files are as published")
        damaged += len(lines)
    if damaged:
        raise SnapshotError(f"{where.root}: {counted(damaged, 'published file')} damaged; ingest again, or restore")


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


@click.command()
@click.option("--all", "every_row", is_flag=True, help="Recompute every digest and not only a sample.")
@home_option
def check(every_row: bool, home: Path | None) -> None:
    """Run every check on the latest snapshot: a line for each that finds nothing, else for each thing found."""
    from assets import checks
    from pipelines.pages import visible
    from warehouse.raw import RawStore

    failed: list[str] = []
    originals = RawStore(Home.at(home).raw)
    with opened(home) as connection:
        for one in checks.all_checks():
            found = checks.run(connection, one, originals, every=1 if every_row else checks.SAMPLE)
            state = "ok" if not found else "failed" if one.blocking else "warning"
            for line in found or [one.description]:
                click.echo(visible(f"{state:8}{one.name}: {line}"))
            if found and one.blocking:
                failed.append(one.name)
    if failed:
        raise SnapshotError(f"the latest snapshot fails {', '.join(failed)}; report it, and do not rely on its figures")


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from pipelines.pages import TEXT_LENGTH, Page, cell

    most = ROWS_SHOWN if len(columns) <= COLUMNS_SHOWN else RECORDS_SHOWN
    page, shown = Page(), rows[:most]
    if len(columns) <= COLUMNS_SHOWN:
        figures = [name for name, value in zip(columns, shown[0], strict=True) if _is_figure(value)] if shown else []
        page.table(columns, shown, numbers=figures, length=TEXT_LENGTH)
    else:
        for row in shown:
            page.fields((name, cell(value) or '""') for name, value in zip(columns, row, strict=True))
            page.line()
    if len(rows) > most:
        page.line(f"the first {most} rows; --format csv or json gives all")
    elif not rows:
        page.line("no rows")


def _print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from pipelines.pages import cell, visible

    # A file gets the text as it is, a terminal what it can show.
    shown = visible if sys.stdout.isatty() else str
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(shown, columns))
    writer.writerows(["" if value is None else shown(cell(value)) for value in row] for row in rows)


def _print_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from pipelines.pages import json_text

    click.echo("[", nl=False)
    for number, row in enumerate(rows):
        click.echo(("," if number else "") + "\n  " + json_text(dict(zip(columns, row, strict=True)), None), nl=False)
    click.echo("\n]")


def _unique(columns: Sequence[str]) -> list[str]:
    """Names of columns, each once: `a`, `a_1`, `a_2`."""
    names: list[str] = []
    for column in columns:
        name, number = column, 0
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return names


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment(text: str | None) -> str | None:
    return f"{text}, {_age(text)} ago" if text else None


def _age(text: str) -> str:
    from pipelines.pages import duration

    return duration((datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds())


COMMANDS = (sql, path, status, snapshots, check)
