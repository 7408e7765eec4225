"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from warehouse.stores import Store, is_url, redacted


class _Folder(click.Path):
    """A home on this machine."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder; a URL is wrong usage."""
        if isinstance(value, str) and is_url(value):
            self.fail(
                f"{redacted(value)} is a store elsewhere, and this command works on a folder; "
                "show, top, compare, cite, sql and path read a store",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class _FolderOrUrl(click.Path):
    """A home on this machine, or a store elsewhere."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A folder's path or, of a URL, its store."""
        if isinstance(value, str) and is_url(value):
            return Store(value)
        return super().convert(value, param, ctx)


# Of commands that write, or that need more of a home than its latest snapshot.
home_option = click.option(
    "--home", "home", type=_Folder(), envvar="KERNELMART_HOME", help="Folder of the warehouse [default: ./data]."
)

# Of commands that read the latest snapshot, wherever it is.
any_home_option = click.option(
    "--home",
    "home",
    type=_FolderOrUrl(),
    envvar="KERNELMART_HOME",
    help="Folder of the warehouse, or fsspec URL where its snapshots are published [default: ./data].",
)
