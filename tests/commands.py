"""Commands of the command line as tests give them."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from pipelines.cli import main

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
