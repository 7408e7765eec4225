"""Commands that show what a snapshot says of runs, submissions, problems and boards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.options import any_home_option
from warehouse.errors import KernelmartError, SnapshotError
from warehouse.home import Home
from warehouse.stores import Store

# What is not needed to list the commands is imported by the command that needs it, so that `--help` is at once there.
if TYPE_CHECKING:
    import duckdb

    from pipelines.records import Match, Record
    from pipelines.sources import Texts
    from warehouse.snapshots import Snapshot

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON with all that there is, to the digit.")


class Instant(click.ParamType[datetime]):
    """A day, which stands for its end, or an instant; in UTC where it names no zone."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The last instant meant."""
        try:
            moment = datetime.fromisoformat(value)
            if len(value) <= len("2025-06-01"):
                moment = datetime.combine(moment, time.max)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a day (2025-06-01) nor an instant (2025-06-01T09:11:14Z)", param, ctx)


@click.command()
@click.argument("what")
@click.option("--manifest", is_flag=True, help="Print a run's documents: {run, protocol, environment}.")
@click.option("--source", "with_source", is_flag=True, help="Print a submission's source, where it is mirrored.")
@json_option
@any_home_option
def show(what: str, manifest: bool, with_source: bool, as_json: bool, home: Path | Store | None) -> None:
    """A record as a page: a run, a submission, a problem, or whatever else a digest names.

    WHAT is a run's id, a digest or its first digits, submission/<number>, or a problem's name.
    """
    from pipelines import records
    from pipelines.pages import Page, json_text

    if with_source and (manifest or as_json):
        raise click.UsageError("--source prints a text alone; --json has it, too")
    with opened(home) as connection:
        if manifest:
            click.echo(json_text(records.manifest(connection, records.find_run(connection, what))))
            return
        if with_source:
            _print_source(connection, what, home)
            return
        matches = records.find(connection, what)
        if matches[0].kind == "board":
            _show_board(connection, matches[0].id, as_json=as_json)
            return
        found = [_record(connection, match) for match in matches]
        if as_json:
            from pipelines import sources

            kind = matches[0].kind
            if kind == "submission":
                found = [
                    sources.with_texts(record, _texts(connection, record, home, with_diff=True)) for record in found
                ]
            several = {"kind": f"{kind}s", f"{kind}s": found}
            click.echo(json_text(several if kind in ("submission", "problem") else found[0]))
            return
        page = Page()
        for number, record in enumerate(found):
            if number:
                page.line()
            _print_record(page, record)


@click.command()
@click.argument("problem")
@click.option("--gpu", help="Only boards on this GPU: its product or label, or a part of it.")
@click.option("--case", help="Only boards of this case: its number, or its workload digest.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Places to show.")
@click.option("--all", "every_run", is_flag=True, help="Every run, not each author's best alone.")
@click.option("--as-of", type=Instant(), help="The board as it stood at the end of a day or at an instant.")
@click.option("--history", is_flag=True, help="How its best fell.")
@json_option
@any_home_option
def top(
    problem: str,
    gpu: str | None,
    case: str | None,
    limit: int,
    every_run: bool,
    as_of: datetime | None,
    history: bool,
    as_json: bool,
    home: Path | Store | None,
) -> None:
    """A leaderboard of one board; where there are several, which there are.

    PROBLEM is a problem's name, or the digest of a board or its first digits.
    """
    from pipelines import records
    from pipelines.pages import Page, json_text, visible

    with opened(home) as connection:
        matches = records.find(connection, problem, ("problem", "board"))
        boards = _boards(connection, matches)
        chosen = records.narrow(boards, gpu, case)
        if boards and not chosen:
            stated = " ".join(filter(None, (gpu and f"on {gpu}", case and f"of case {case}")))
            pick = command_line("top", problem)
            raise KernelmartError(f"{problem} has no board {stated}; '{pick}' lists the {len(boards)} that it has")
        if len(chosen) == 1:
            key = chosen[0]["comparison_key"]
            _show_board(
                connection, key, as_json=as_json, limit=limit, every_run=every_run, as_of=as_of, history=history
            )
            return
        if as_json:
            click.echo(json_text({"kind": "boards", **_snapshot(connection), "boards": chosen}))
            return
        if not boards:
            name = visible(matches[0].id)
            click.echo(f"no run of {name} is ranked; '{command_line('show', problem)}' says why")
            return
        page = Page()
        from pipelines.record_pages import boards_table

        boards_table(page, chosen)
        page.line()
        largest = max(chosen, key=lambda board: board["runs"])
        page.line(f"The largest of them: {_pick(problem, boards, largest)}")


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@any_home_option
def compare(first: str, second: str | None, home: Path | Store | None) -> None:
    """Two runs of one board side by side; B is the first of A's board unless named."""
    from pipelines import records
    from pipelines.board_pages import compare_page
    from pipelines.pages import Page

    with opened(home) as connection:
        a = records.run(connection, records.find_run(connection, first))
        if second is None and a["cohort_best_run_id"] is None:
            reasons = ", ".join(a["ineligible_reasons"])
            raise KernelmartError(f"{a['run_id']} is in no ranks ({reasons}); name the run to compare it with")
        b_id = records.find_run(connection, second) if second is not None else a["cohort_best_run_id"]
        b = records.run(connection, b_id)
        for record in (a, b):
            if record["comparison_key"] is None:
                reasons = ", ".join(record["ineligible_reasons"])
                raise KernelmartError(f"{record['run_id']} has no comparison key ({reasons}); it compares with nothing")
        if parts := records.differing_parts(a, b):
            raise KernelmartError(
                f"{a['run_id']} and {b['run_id']} cannot be compared: they differ in {', '.join(parts)}; "
                f"name two runs of one board, as '{command_line('top', a['comparison_key'][7:19])}' lists them"
            )
        compare_page(Page(), a, b)


@click.command()
@click.argument("run")
@click.option("--bibtex", is_flag=True, help="As a BibTeX entry.")
@any_home_option
def cite(run: str, bibtex: bool, home: Path | Store | None) -> None:
    """How to cite a run: its id and digest, the snapshot and its digest, attribution and access date."""
    from pipelines import citation, records

    with opened(home) as connection:
        record = records.run(connection, records.find_run(connection, run))
    parts = citation.citation(record, datetime.now(UTC).date(), os.environ.get("KERNELMART_PUBLIC_URL"))
    click.echo(citation.bibtex(parts) if bibtex else citation.sentence(parts))


@contextmanager
def opened(home: Path | Store | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """The latest snapshot, read-only. Whatever fails is said in one line that a terminal can show."""
    import duckdb

    from pipelines.pages import visible
    from pipelines.records import AmbiguousError

    snapshot = snapshot_at(home)
    try:
        with snapshot.open() as connection:
            yield connection
    except duckdb.Error as error:
        message = visible(" ".join(str(error).split()))
        raise SnapshotError(
            f"{snapshot.database}: {message}; 'kernelmart snapshots verify' says whether it is damaged"
        ) from error
    except KernelmartError as error:
        if isinstance(error, AmbiguousError):
            for match in error.candidates:
                words = (match.kind, match.id, match.digest if match.digest != match.id else None, match.detail)
                click.echo("  ".join(visible(word, 120) for word in words if word), err=True)
        raise KernelmartError(visible(str(error), 1000)) from error


def snapshot_at(home: Path | Store | None) -> Snapshot:
    """The latest snapshot of a home or, its DuckDB file alone, of a store elsewhere."""
    if isinstance(home, Store):
        from warehouse.elsewhere import latest_of

        return latest_of(home).cached()
    from warehouse.snapshots import required

    return required(Home.at(home))


def command_line(*words: str) -> str:
    """A command of this program to paste into a shell, on the same home as the one that runs."""
    from pipelines.pages import shell_command, visible

    context = click.get_current_context()
    if context.get_parameter_source("home") is click.core.ParameterSource.COMMANDLINE:
        words = (*words, "--home", str(context.params["home"]))
    return visible(shell_command("kernelmart", *words), 1000)


def _record(connection: duckdb.DuckDBPyConnection, match: Match) -> Record:
    from pipelines import records

    if match.kind == "run":
        run = records.run(connection, match.id)
        return {**run, "command": command_line("top", _name(run))}
    if match.kind == "submission":
        from pipelines import sources

        submission = {**records.submission(connection, match.id), **sources.implementation(connection, match.id)}
        return {**submission, **_snapshot(connection), "command": command_line("top", _name(submission))}
    if match.kind == "problem":
        problem = records.problem(connection, str(match.source), match.id)
        return {**problem, **_snapshot(connection), "command": command_line("top", _name(problem))}
    return {**records.document(connection, match.kind, match.id), **_snapshot(connection)}


def _print_source(connection: duckdb.DuckDBPyConnection, what: str, home: Path | Store | None) -> None:
    """Print the source of the one submission that goes by a name, as a terminal can show it."""
    from pipelines import records, sources
    from pipelines.source_pages import print_text

    matches = records.find(connection, what, ("submission",))
    if len(matches) > 1:
        raise KernelmartError(f"{what} is a submission of several sources; only one of them has texts")
    record = sources.implementation(connection, matches[0].id)
    print_text(sources.source_text(record, _texts(connection, record, home, with_diff=False)))


def _texts(
    connection: duckdb.DuckDBPyConnection, record: Record, home: Path | Store | None, *, with_diff: bool
) -> Texts:
    """The texts that a submission's own are among, of the snapshot that is open."""
    from pipelines import sources

    if isinstance(home, Store):
        from warehouse.elsewhere import latest_of

        # The cache has the DuckDB file alone. Whichever snapshot is the latest by now will do: a source is known by its
        # digest, and what an earlier submission changed stays what it is.
        return sources.texts_elsewhere(latest_of(home), record, with_diff=with_diff)
    from warehouse.snapshots import Snapshot

    return sources.texts_of(Snapshot(Home.at(home).snapshots / _snapshot(connection)["snapshot_id"]))


def _print_record(page: Any, record: Record) -> None:
    from pipelines import record_pages, source_pages

    if record["kind"] == "run":
        record_pages.run_page(page, record, record["command"])
    elif record["kind"] == "submission":
        record_pages.submission_page(page, record, record["command"])
        source_pages.implementation_page(page, record)
    elif record["kind"] == "problem":
        record_pages.problem_page(page, record, record["command"])
    else:
        record_pages.document_page(page, record)


def _show_board(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    *,
    as_json: bool,
    limit: int = 10,
    every_run: bool = False,
    as_of: datetime | None = None,
    history: bool = False,
) -> None:
    from pipelines import records
    from pipelines.board_pages import board_page, history_page
    from pipelines.pages import Page, instant, json_text

    snapshot = _snapshot(connection)
    falls = records.history(connection, key, as_of) if history else None
    if as_of:
        records.go_back(connection, key, as_of)
    boards = records.boards(connection, digest=key)
    if not boards:
        raise KernelmartError(f"no run of board {key} had been observed by {instant(as_of)}; ask for a later day")
    places = records.places(connection, key, every_run=every_run, limit=limit)
    if as_json:
        record = {"kind": "leaderboard", **snapshot, "as_of": as_of, "board": boards[0], "places": places}
        click.echo(json_text({**record, "history": falls} if history else record))
        return
    page = Page()
    board_page(page, boards[0], places, every_run=every_run, as_of=as_of)
    if falls is not None:
        history_page(page, boards[0], falls, as_of or boards[0]["last_observed_at"])


def _boards(connection: duckdb.DuckDBPyConnection, matches: Sequence[Match]) -> list[Record]:
    from pipelines import records

    found: dict[str, Record] = {}
    for match in matches:
        if match.kind == "board":
            listed = records.boards(connection, digest=match.id)
        else:
            listed = records.boards(connection, source=match.source, problem=match.id)
        for board in listed:
            found.setdefault(board["comparison_key"], board)
    return list(found.values())


def _pick(problem: str, boards: Sequence[Record], board: Record) -> str:
    """The command that shows one board of several."""
    from pipelines import records

    gpu = board["runners"][0] if board["runners"] else board["gpu"]
    case = str(board["case_indices"][0]) if board["case_indices"] else None
    if gpu.isprintable() and len(records.narrow(boards, gpu, case)) == 1:
        return command_line("top", problem, "--gpu", gpu, *(("--case", case) if case is not None else ()))
    return command_line("top", board["comparison_key"].removeprefix("sha256:")[:12])


def _name(record: Mapping[str, Any]) -> str:
    """A problem's name, or its digest where a shell could not take the name as it is printed."""
    name: str = record["problem"]
    ordinary = name.isprintable() and len(name) <= 100 and name.strip() == name and not name.startswith("-")
    return name if ordinary else record["problem_digest"]


def _snapshot(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    from pipelines import records

    row = records.snapshot(connection)
    return {"snapshot_id": row["snapshot_id"], "snapshot_digest": row["content_digest"]}


COMMANDS = (show, top, compare, cite)
