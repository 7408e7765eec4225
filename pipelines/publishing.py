"""The command that publishes a snapshot elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from pipelines.options import home_option
from warehouse.home import Home
from warehouse.stores import is_url


@click.command()
@click.option(
    "--to",
    "url",
    metavar="URL",
    envvar="KERNELMART_PUBLISH_URL",
    required=True,
    help="fsspec URL of a folder: s3://bucket/prefix, file:///srv/kernelmart … [default: KERNELMART_PUBLISH_URL].",
)
@home_option
def publish(url: str, home: Path | None) -> None:
    """Copy the latest snapshot to a store elsewhere, and make it the latest there.

    Credentials are the store's own: of S3 the AWS_ settings, of any store FSSPEC_<PROTOCOL>_<OPTION>.
    """
    from pipelines.pages import counted, size, visible
    from warehouse.elsewhere import publish_to
    from warehouse.snapshots import required

    if not is_url(url):
        raise click.BadParameter("it is no URL; a folder's begins with file://", param_hint="'--to'")
    done = publish_to(url, required(Home.at(home)))
    click.echo(visible(f"{'published' if done.pointer_moved else 'unchanged'}: {done.address}", 1000))
    sent = f"{counted(done.sent, 'file')} sent ({size(done.sent_bytes)})"
    click.echo(f"{sent}, {done.copied} copied there, {done.present} there already")


COMMANDS = (publish,)
