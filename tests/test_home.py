"""One ingest at a time has a home; what a killed one leaves behind is in nobody's way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse import files
from warehouse.errors import HomeError
from warehouse.home import Home, read_json

ROOT = Path(__file__).resolve().parent.parent
HOLD = """
import sys
from warehouse.home import Home
with Home.at(sys.argv[1]).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(root: Path) -> subprocess.Popen[str]:
    """Another process that holds a home until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_home_that_another_process_holds_is_refused_naming_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with holder(tmp_path) as process:
        with (
            pytest.raises(HomeError, match=f"another ingest holds this home .process {process.pid} on ") as raised,
            home.locked(),
        ):
            pytest.fail("two processes hold one home")
        assert str(raised.value).startswith(f"{tmp_path}: ")
        assert "wait for it to end" in str(raised.value)
        assert read_json(tmp_path / "lock.json")["process"] == process.pid
        process.communicate("")
    assert process.returncode == 0
    with home.locked():
        assert read_json(tmp_path / "lock.json")["process"] == os.getpid()
    assert not (tmp_path / "lock.json").exists()


def test_a_home_is_free_as_soon_as_its_holder_is_killed(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        left = [
            tmp_path / f"{files.ASIDE}0",
            tmp_path / "tables" / f"{files.ASIDE}1",
            tmp_path / "raw" / f"{files.ASIDE}2",
        ]
        for path in left:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"half")
        (tmp_path / "snapshots" / f"{files.ASIDE}3").mkdir(parents=True)
        (tmp_path / "tables" / ".temporary" / "spilled").write_bytes(b"x")
        process.send_signal(signal.SIGKILL)
        process.wait()
    # What the dead holder said of itself is still there, and means nothing.
    assert read_json(tmp_path / "lock.json")["process"] == process.pid
    with Home(tmp_path).locked():
        assert list(tmp_path.rglob(f"{files.ASIDE}*")) == []
        assert list(Home(tmp_path).temporary.iterdir()) == []


def test_a_home_cannot_be_held_twice_in_one_process(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.locked():
        with pytest.raises(HomeError, match=f"process {os.getpid()}"), home.locked():
            pytest.fail("one home is held twice")
        # The one that was refused has taken nothing away.
        assert home.temporary.is_dir()
        assert read_json(tmp_path / "lock.json")["process"] == os.getpid()
    assert not home.temporary.exists()


def test_a_home_is_released_when_its_ingest_fails(tmp_path: Path) -> None:
    home = Home(tmp_path)

    def ingest() -> None:
        with home.locked():
            raise ValueError("the ingest fails")

    with pytest.raises(ValueError, match="the ingest fails"):
        ingest()
    assert not (tmp_path / "lock.json").exists()
    with home.locked():
        pass


def test_a_place_that_can_be_no_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    for root in (tmp_path / "file", tmp_path / "file" / "home"):
        with pytest.raises(HomeError, match=f"{root}: the home cannot be locked: "), Home(root).locked():
            pytest.fail("a file is a home")


def test_a_home_is_where_the_caller_or_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELMART_HOME", raising=False)
    assert Home.at().root == tmp_path / "data"
    monkeypatch.setenv("KERNELMART_HOME", "elsewhere")
    assert Home.at().root == tmp_path / "elsewhere"
    assert Home.at("here").root == tmp_path / "here"
    assert Home.at(tmp_path / "there").snapshots == tmp_path / "there" / "snapshots"


def test_a_status_that_is_missing_or_damaged_is_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.read_status() == {}
    status = {"checked_at": "2026-01-01T00:00:00+00:00", "sources": {"é": {"stale": True}}}
    home.write_status(status)
    assert home.read_status() == status
    others = (
        b'{"sources": 5, "checked_at": ""}',
        b'{"sources": {"a": 5}, "checked_at": ""}',
        b'{"checked_at": 5}',
        b"[]",
    )
    for damage in (b'{"stale": [', b"\xff", b"", *others):
        home.status.write_bytes(damage)
        assert home.read_status() == {}
    assert read_json(tmp_path) is None
