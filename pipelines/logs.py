"""Log lines on standard error: one a step from this project, warnings from everybody else."""

from __future__ import annotations

import logging
import sys


def configure() -> None:
    """Write lines as the command line does, unless somebody has seen to it already."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("kernelmart").setLevel(logging.INFO)
