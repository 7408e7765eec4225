"""Commands of the command line as tests give them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from pipelines.cli import main
from warehouse.home import Home
from warehouse.snapshots import Snapshot, required

PROJECT = Path(__file__).resolve().parent.parent
# Pages are as wide as they like, and nothing is published anywhere.
_ENVIRONMENT = {"COLUMNS": None, "KERNELMART_PUBLIC_URL": None}


def run(home: Path | str, *words: str) -> Result:
    """Run a command on a home; its exit code is the caller's to look at, an error that nobody expected is raised."""
    result = CliRunner().invoke(main, [*words, "--home", str(home)], env=_ENVIRONMENT)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def printed(home: Path | str, *words: str) -> str:
    """What a command that succeeds prints; nothing of it may be anything but text."""
    result = run(home, *words)
    assert result.exit_code == 0, result.output
    assert harmful(result.stdout) == set()
    return result.stdout


def as_json(home: Path | str, *words: str) -> Any:
    """What a command that succeeds prints as JSON."""
    return json.loads(printed(home, *words, "--json"))


def refused(home: Path | str, *words: str, code: int = 1) -> str:
    """The one line in which a command says why it fails."""
    result = run(home, *words)
    assert result.exit_code == code, result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    assert harmful(result.stderr) == set()
    return line.removeprefix("Error: ")


def ingested_apart(saved: Path, home: Path, *before: str, **environment: str) -> Snapshot:
    """The snapshot that a process of its own makes of saved files, with another environment than ours.

    Args:
        saved: the folder.
        home: where nothing has been ingested yet.
        before: what runs the command, if anything.
        environment: settings; of ours, those of the language, the zone and Python are left out.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "TZ", "PYTHON"))}
    words = [*before, sys.executable, "-m", "pipelines.cli", "ingest", "--from", str(saved), "--home", str(home)]
    done = subprocess.run(
        words, cwd=PROJECT, env={**kept, **environment}, capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stdout[:10]) == (0, "published:"), done.stderr
    return required(Home(home))


def harmful(text: str) -> set[str]:
    """Characters but line ends that a terminal would obey or hide, or that reorder what stands beside them."""
    return {
        character
        for character in set(text) - {"\n", "\u200c", "\u200d"}
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }


def fields(page: str) -> dict[str, str]:
    """Names and values of a page's fields; the first of each name."""
    found: dict[str, str] = {}
    for line in page.splitlines():
        if match := re.fullmatch(r"(\S+(?: \S+)*) {2,}(\S.*)", line):
            found.setdefault(match[1], match[2].strip())
    return found


def table(page: str, first_column: str) -> list[list[str]]:
    """Cells of the table whose header begins with a name, blanks between two columns at least two."""
    lines = page.splitlines()
    start = next(number for number, line in enumerate(lines) if line.split()[:1] == [first_column])
    rows: list[list[str]] = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        rows.append(re.split(r" {2,}", line.strip()))
    return rows
