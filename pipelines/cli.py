"""The command line."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any, Literal

import click

from pipelines import development, exporting, inspecting, publishing, raw_commands, reading, snapshot_commands
from pipelines.failures import advised
from pipelines.logs import configure
from pipelines.options import home_option
from warehouse.errors import KernelmartError
from warehouse.home import Home

STALE = 3
# A message names files and folders, and those may be long.
MESSAGE_LENGTH = 2_000


class _Commands(click.Group):
    """Commands whose expected failures are one line on standard error and exit code 1."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KernelmartError as error:
            from pipelines.pages import visible

            raise click.ClickException(visible(advised(str(error)), limit=MESSAGE_LENGTH)) from error
        except OSError as error:
            # A reader that went away is click's to handle.
            if error.errno == errno.EPIPE:
                raise
            from pipelines.pages import visible

            where = f"{error.filename}: " if error.filename else ""
            line = advised(f"{where}{error.strerror or error}")
            raise click.ClickException(visible(line, limit=MESSAGE_LENGTH)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """GPU kernel leaderboards as exact, comparable tables."""
    configure()


for _command in (
    *reading.COMMANDS,
    *inspecting.COMMANDS,
    *snapshot_commands.COMMANDS,
    *publishing.COMMANDS,
    *exporting.COMMANDS,
    *raw_commands.COMMANDS,
    *development.COMMANDS,
):
    main.add_command(_command)


@main.command()
@click.option(
    "--from", "folder", type=click.Path(path_type=Path), help="Read saved files, one folder a source, and pull nothing."
)
@click.option("--source", "sources", multiple=True, help="Only this source; may be given several times.")
@click.option(
    "--known-sources",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Parquet file of submissions' source digests.",
)
@click.option(
    "--code",
    type=click.Choice(["none", "index", "mirror"]),
    default="none",
    show_default=True,
    help="Read the submissions' sources, whole files: for what they are (index), or to keep them, too (mirror).",
)
@click.option(
    "--replay",
    metavar="SNAPSHOT",
    help="Make the tables of an earlier snapshot again, of its kept originals, and publish them.",
)
@click.option("--force", is_flag=True, help="Publish also content that was withdrawn.")
@click.option("--accept-loss", is_flag=True, help="Publish also what has lost more than a tenth of its rows.")
@click.option("--file", "files", multiple=True, help="Fetch only this file or answer, once more; may be given again.")
@home_option
def ingest(
    folder: Path | None,
    sources: tuple[str, ...],
    known_sources: Path | None,
    code: Literal["none", "index", "mirror"],
    replay: str | None,
    force: bool,
    accept_loss: bool,
    files: tuple[str, ...],
    home: Path | None,
) -> None:
    """Pull the sources, rank what is comparable, and publish a snapshot."""
    from pydantic import ValidationError

    from pipelines.ingest import ingest as run_ingest
    from pipelines.pages import visible
    from pipelines.resources import Request, folder_problem

    if replay is not None and (folder or sources or known_sources or files):
        raise click.UsageError("--replay reads what its snapshot was made from, so it goes with no other input")
    try:
        request = Request(
            folder=str(folder.absolute()) if folder else None,
            replay=replay,
            sources=list(sources),
            known_sources=str(known_sources.absolute()) if known_sources else None,
            code=code,
            force=force,
            accept_loss=accept_loss,
            files=list(files),
        )
    except ValidationError as error:
        raise click.UsageError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
    if folder is not None and (problem := folder_problem(folder, list(sources))):
        raise KernelmartError(problem)
    outcome = run_ingest(Home.at(home), request)
    for kind, lines in (("stale", outcome.stale), ("gone", outcome.gone), ("withheld", outcome.withheld)):
        for line in lines:
            click.echo(f"{kind}: {visible(line, limit=MESSAGE_LENGTH)}", err=True)
    click.echo(f"{'published' if outcome.published else 'unchanged'}: snapshot {outcome.snapshot_id}")
    if outcome.stale:
        sys.exit(STALE)


if __name__ == "__main__":
    main()
