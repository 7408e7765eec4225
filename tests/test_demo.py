"""The demo shows what the README says that it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def test_the_demo_shows_a_leaderboard_a_record_and_where_the_files_are(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    words = [sys.executable, "-m", "replica.demo"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "published: snapshot " in done.stdout
    assert "amd-fp8-mm · case 0 · AMD Instinct MI300X\n" in done.stdout
    assert "4.18 ms, mean of 20 (4175913 ns)\n" in done.stdout
    folder = Path(done.stdout.strip().splitlines()[-1])
    assert (folder / "kernelmart.duckdb").is_file()
    assert folder.is_relative_to(tmp_path / "data" / "demo" / "home" / "snapshots")
