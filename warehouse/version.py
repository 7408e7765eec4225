"""The version of the pipeline that a snapshot names."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def code_version() -> str:
    """Version of the installed package; `unknown` where it is not installed."""
    try:
        return version("kernelmart")
    except PackageNotFoundError:
        return "unknown"
