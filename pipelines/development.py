"""Commands about a home's Dagster instance: its pages, and its settings for a daemon of one's own."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import click

from pipelines.options import home_option
from warehouse.home import Home

# `dg dev` is a package of its own, for projects of another shape.
_QUIET = ("-W", "ignore:Function `dev_command`")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; the pages ask no password.")
@click.option("--port", type=click.IntRange(1, 65_535), default=3000, show_default=True, help="Port to listen on.")
@home_option
def dev(host: str, port: int, home: Path | None) -> None:
    """Dagster's pages and daemon for this home, until interrupted.

    Schedule and sensors are there and stopped; KERNELMART_UNATTENDED=1 starts them.
    """
    from pipelines.instance import PROJECT, prepare

    where = Home.at(home)
    prepare(where)
    os.environ["KERNELMART_HOME"] = str(where.root)
    click.echo(f"http://{host}:{port} shows {where.root}; interrupt to stop")
    sys.stdout.flush()
    # Dagster would warn of the project's dagster.yaml if it were started beside it.
    os.chdir(where.root)
    # Where a shell started this in the background it is ignored, and Dagster would end on no signal at all.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = ["-m", "dagster", "dev", "--workspace", str(PROJECT / "deploy" / "workspace.yaml")]
    os.execv(sys.executable, [sys.executable, *_QUIET, *words, "--host", host, "--port", str(port)])  # noqa: S606


@click.command()
@home_option
def prepare(home: Path | None) -> None:
    """Put the settings of the Dagster instance into this home, before its daemon and its pages are started."""
    from pipelines.instance import instance_of

    with instance_of(Home.at(home)) as instance:
        click.echo(instance.root_directory)


COMMANDS = (dev, prepare)
