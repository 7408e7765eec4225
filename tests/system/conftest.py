"""What tests need of the machine: Chromium and PostgreSQL, from Debian's packages.

A test is skipped where they are not found, unless `KERNELMART_SYSTEM_TESTS` is set, as `make test-system` does.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def required(found: str | None, what: str, package: str) -> Path:
    """A program; without it the test is skipped, or fails where it must not be."""
    if found is None:
        reason = f"{what} is not there: install Debian's package {package}, as 'make test-system' does"
        if os.environ.get("KERNELMART_SYSTEM_TESTS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Path(found)


@pytest.fixture(scope="session")
def chromium() -> Path:
    return required(shutil.which("chromium") or shutil.which("chromium-browser"), "Chromium", "chromium")


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder with `initdb` and `postgres`; Debian does not put it on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    found = next((str(folder) for folder in folders if (folder / "initdb").exists()), None)
    return required(found or (on_path and str(Path(on_path).parent)), "PostgreSQL", "postgresql")


@pytest.fixture(scope="session")
def systemd_analyze() -> Path:
    return required(shutil.which("systemd-analyze"), "systemd-analyze", "systemd")
