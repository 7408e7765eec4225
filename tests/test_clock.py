"""Clocks, zones and locales change nothing: the same files give the same content on whatever machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import SmallHome
from warehouse.home import Home
from warehouse.snapshots import required

PROJECT = Path(__file__).resolve().parent.parent


def content_of(home: Path) -> str:
    return str(required(Home(home)).manifest["content_digest"])


def ingested(saved: Path, home: Path, *before: str, **environment: str) -> None:
    """Ingest saved files in a process of its own, with another environment than ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "TZ", "PYTHON"))}
    words = [*before, sys.executable, "-m", "pipelines.cli", "ingest", "--from", str(saved), "--home", str(home)]
    done = subprocess.run(
        words, cwd=PROJECT, env={**kept, **environment}, capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stdout[:10]) == (0, "published:"), done.stderr


def test_zone_and_locale_change_nothing(small_home: SmallHome, tmp_path: Path) -> None:
    ingested(small_home.corpus.folder, tmp_path / "home", TZ="Pacific/Kiritimati", LC_ALL="C", PYTHONUTF8="0")
    assert Home(tmp_path / "home").read_status()["checked_at"].endswith("+00:00")
    assert content_of(tmp_path / "home") == content_of(small_home.home)
