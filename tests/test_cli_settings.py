"""A setting or a value that is of no use is named in one line, and nothing else is blamed for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from replica.corpus import Corpus
from tests.commands import refused
from tests.small_snapshot import BOARD


@pytest.mark.parametrize("value", ["nonsense", "0", "-1", "1.5", "2 ", "100000"])
def test_a_number_of_threads_that_is_none_is_named(
    value: str, known_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_THREADS", value)
    assert refused(known_home, "sql", "select 1") == f"KERNELMART_THREADS is {value!r}; give a number, as 2"


@pytest.mark.parametrize("value", ["nonsense", "300", "-1GB", "MB", "1e3MB", "none"])
def test_a_memory_limit_that_is_none_is_named(value: str, known_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELMART_MEMORY_LIMIT", value)
    assert refused(known_home, "sql", "select 1") == f"KERNELMART_MEMORY_LIMIT is {value!r}; give a size, as 300MB"


def test_too_little_memory_is_one_line_that_says_what_to_set(small_corpus: Corpus, tmp_path: Path) -> None:
    given = ["--home", str(tmp_path / "home"), "--from", str(small_corpus.folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "ingest", *given],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "KERNELMART_MEMORY_LIMIT": "5MB"},
        cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert re.fullmatch(
        r"Error: DuckDB .+ \(.+ MiB/4\.7 MiB used\); set KERNELMART_MEMORY_LIMIT to more, as 1GB, and try again", line
    ), line


@pytest.mark.parametrize("value", ["http://[::1", "http://somebody:hunter2@hub:99999"])
def test_an_address_of_the_hub_that_is_none_is_named(value: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "ingest", "--home", str(tmp_path)], capture_output=True, text=True,
        check=False, timeout=120, env={**os.environ, "HF_ENDPOINT": value}, cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "Error: HF_ENDPOINT is no URL; correct it\n")


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "10000-01-01"])
def test_an_instant_that_no_clock_tells_is_wrong_usage(value: str, known_home: Path) -> None:
    line = refused(known_home, "top", BOARD, "--case", "0", "--as-of", value, code=2)
    assert f"'{value}' is neither a day (2025-06-01) nor an instant" in line


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_value_larger_than_python_has_is_one_line(form: str, known_home: Path) -> None:
    line = refused(known_home, "sql", "select interval '9999999 years'", "--format", form)
    assert line == "a value of the answer is larger than Python has; cast it to varchar"
