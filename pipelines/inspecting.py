"""Commands that look at a home and its snapshots: SQL, paths, state, and whether all is as it should be."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.options import any_home_option, home_option
from pipelines.reading import json_option, opened
from warehouse.errors import KernelmartError, SnapshotError
from warehouse.home import Home
from warehouse.stores import Store

if TYPE_CHECKING:
    from pipelines.health import Health
    from pipelines.pages import Page

# A terminal takes no more; files take all.
ROWS_SHOWN = 1000
# Of rows that are shown one below the other.
RECORDS_SHOWN = 100
# A wider table would be folded beyond reading: its rows are shown one below the other.
COLUMNS_SHOWN = 12
DATABASE = "duckdb"
_PUBLISHED = ("snapshot_id", "created_at", "content_digest", "schema_version", "ranking_policy", "code_version")


@click.command()
@click.argument("statement")
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True, help="Form."
)
@any_home_option
def sql(statement: str, form: str, home: Path | Store | None) -> None:
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
        except OverflowError as error:
            raise KernelmartError("a value of the answer is larger than Python has; cast it to varchar") from error


@click.command()
@click.argument("table", required=False)
@any_home_option
def path(table: str | None, home: Path | Store | None) -> None:
    """Where the latest snapshot lies: its folder; TABLE's Parquet files; or, for "duckdb", its DuckDB file."""
    from warehouse.contracts import PARQUET_ONLY, TABLES
    from warehouse.snapshots import required

    if isinstance(home, Store):
        from warehouse.elsewhere import latest_of

        published = latest_of(home)
        folder, known = published.address, any(name.startswith(f"parquet/{table}/") for name in published.files)
        database = str(published.cached().database) if table == DATABASE else ""
    else:
        snapshot = required(Home.at(home))
        folder, known = str(snapshot.folder), table is not None and bool(snapshot.parquet(table))
        database = str(snapshot.database)
    if table is None:
        click.echo(folder)
    elif table == DATABASE:
        click.echo(database)
    elif table in TABLES or table in PARQUET_ONLY or known:
        click.echo(f"{folder}/parquet/{table}/*.parquet")
    else:
        raise click.UsageError(
            f"there is no table {table!r}; there are {DATABASE}, {', '.join([*TABLES, *PARQUET_ONLY])}"
        )


@click.command()
@click.option("--tell", "telling", is_flag=True, help="Send the alerts that are due, too.")
@json_option
@home_option
def status(telling: bool, as_json: bool, home: Path | None) -> None:
    """What the last ingest saw, the latest snapshot, and what somebody has to look at."""
    from pipelines.health import Health, used_bytes
    from pipelines.pages import Page, json_text

    where, now = Home.at(home), datetime.now(UTC)
    health = Health.of(where)
    if not health.status and not health.ended and health.manifest is None and health.damage is None:
        raise SnapshotError(f"{where.root}: nothing has been ingested yet; run 'kernelmart ingest' first")
    if telling:
        from pipelines.alerts import tell

        tell(where, now)
    published = {name: health.manifest[name] for name in _PUBLISHED} if health.manifest else None
    rows = {name: table["rows"] for name, table in health.manifest["tables"].items()} if health.manifest else {}
    found = {
        "home": str(where.root),
        **health.status,
        "last_ingest": dict(health.ended) or None,
        "snapshot": published,
        "rows": rows,
        "rejects": health.rows("rejects"),
        "drift": health.rows("drift"),
        "disk": {"used_bytes": used_bytes(where.root), "free_bytes": health.free_bytes},
        "incidents": [incident.as_record() for incident in health.incidents(now)],
    }
    if as_json:
        click.echo(json_text(found))
    else:
        _status_page(Page(), found, health)


def _status_page(page: Page, found: Mapping[str, Any], health: Health) -> None:
    from pipelines.pages import size

    ended = health.ended
    disk = found["disk"]
    page.fields(
        [
            ("Home", found["home"]),
            ("Checked", _moment(health.status.get("checked_at"))),
            ("Last ingest", f"{'failed' if ended.get('failure') else 'ended well'}, {_moment(ended.get('ended_at'))}"
             if ended else None),
            *((name.replace("_", " ").capitalize(), value) for name, value in (found["snapshot"] or {}).items()),
            ("Rows", ", ".join(f"{name} {count}" for name, count in found["rows"].items() if count)),
            ("Rejects", found["rejects"]),
            ("Drift", found["drift"]),
            ("Withheld", "; ".join(health.status.get("withheld") or [])),
            ("Disk", f"{size(disk['used_bytes'])} used, {size(disk['free_bytes'])} free"),
            ("Incidents", len(found["incidents"]) or "none"),
        ]
    )  # fmt: skip
    for source, state in health.sources.items():
        page.heading(source)
        page.fields(
            [
                ("State", "stale" if state.get("stale") else "fresh"),
                ("Because", "; ".join(state.get("stale_because", []))),
                ("Revision", state.get("revision")),
                ("Files", len(state.get("files", []))),
                ("Last success", _moment(state.get("last_success_at"))),
                ("Last change", _moment(state.get("last_changed_at"))),
                ("Oldest walk", _moment(state.get("oldest_walk_at"))),
            ]
        )
    for incident in found["incidents"]:
        page.heading(f"Incident: {incident['incident']}")
        page.fields([("What", incident["what"]), ("Since", _moment(incident["since"])), ("Try", incident["command"])])


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
    from pipelines.health import moment
    from pipelines.pages import duration

    at = moment(text)
    return f"{text}, {duration((datetime.now(UTC) - at).total_seconds())} ago" if at else None


COMMANDS = (sql, path, status, check)
