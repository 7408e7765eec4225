"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

home_option = click.option(
    "--home",
    "home",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="KERNELMART_HOME",
    help="Folder of the warehouse [default: ./data].",
)
