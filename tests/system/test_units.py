"""systemd's own opinion of the units."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pipelines.instance import PROJECT


def test_systemd_finds_nothing_wrong_with_the_units(systemd_analyze: Path, tmp_path: Path) -> None:
    # The programs are where they are deployed, which is not here.
    units = []
    for unit in sorted((PROJECT / "deploy" / "systemd").iterdir()):
        text = "".join(
            f"{line.partition('=')[0]}=/bin/true\n" if line.startswith("Exec") else line
            for line in unit.read_text().splitlines(keepends=True)
        )
        (tmp_path / unit.name).write_text(text)
        units.append(str(tmp_path / unit.name))
    words = [str(systemd_analyze), "verify", "--man=no", *units]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_timer_fires_at_half_past_two_utc(systemd_analyze: Path) -> None:
    words = [str(systemd_analyze), "calendar", "--base-time=2028-03-12 00:00:00 UTC", "--iterations=3",
             "*-*-* 02:30:00 UTC"]  # fmt: skip
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env={"TZ": "America/New_York", "LC_ALL": "C"}
    )
    assert "2028-03-12 02:30:00" in done.stdout
