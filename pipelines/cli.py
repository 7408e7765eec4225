"""The command line."""

from __future__ import annotations

import errno
import logging
import sys
from pathlib import Path
from typing import Any

import click

from pipelines import inspecting, reading
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

            raise click.ClickException(visible(str(error), limit=MESSAGE_LENGTH)) from error
        except OSError as error:
            # A reader that went away is click's to handle.
            if error.errno == errno.EPIPE:
                raise
            from pipelines.pages import visible

            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(visible(f"{where}{error.strerror or error}", limit=MESSAGE_LENGTH)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """GPU kernel leaderboards as exact, comparable tables."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("kernelmart").setLevel(logging.INFO)


for _command in (*reading.COMMANDS, *inspecting.COMMANDS):
    main.add_command(_command)


@main.command()
@click.option("--from", "folder", type=click.Path(path_type=Path), help="Folder of saved files, one folder a source.")
@click.option("--source", "sources", multiple=True, help="Only this source; may be given several times.")
@click.option(
    "--known-sources",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Parquet file of submissions' source digests.",
)
@home_option
def ingest(folder: Path | None, sources: tuple[str, ...], known_sources: Path | None, home: Path | None) -> None:
    """Read the sources, rank what is comparable, and publish a snapshot."""
    from pipelines.ingest import ingest as run_ingest
    from pipelines.pages import visible
    from pipelines.resources import SOURCE_FOLDERS, Request, folder_problem

    unknown = [source for source in sources if source not in SOURCE_FOLDERS]
    if unknown:
        raise click.UsageError(f"unknown source {unknown[0]!r}; there are {', '.join(SOURCE_FOLDERS)}")
    if folder is None:
        raise click.UsageError("name the folder of saved files with --from")
    if problem := folder_problem(folder, list(sources)):
        raise KernelmartError(problem)
    request = Request(
        folder=str(folder.absolute()),
        sources=list(sources),
        known_sources=str(known_sources.absolute()) if known_sources else None,
    )
    outcome = run_ingest(Home.at(home), request)
    for line in outcome.stale:
        click.echo(f"stale: {visible(line, limit=MESSAGE_LENGTH)}", err=True)
    for line in outcome.gone:
        click.echo(f"gone: {visible(line, limit=MESSAGE_LENGTH)}", err=True)
    click.echo(f"{'published' if outcome.published else 'unchanged'}: snapshot {outcome.snapshot_id}")
    if outcome.stale:
        sys.exit(STALE)


if __name__ == "__main__":
    main()
