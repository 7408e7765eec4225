"""Pictures and the table of changes: what they show, and that upstream's names are only names in them."""

from __future__ import annotations

import base64
import io
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from matplotlib import image

from assets.pictures import changes_table, pictures, record_progress, runs_per_board
from warehouse.home import Home
from warehouse.snapshots import required

HOSTILE = r"$\frac{1}{0}$ ![x](https://example.org/x.png) <img src=x> | `a` " + "\x1b[2J\u202e" + "名" + "y" * 100


def is_a_picture(png: bytes) -> bool:
    pixels = image.imread(io.BytesIO(png), format="png")
    return bool(pixels.shape[0] > 100 and pixels.shape[1] > 300 and pixels[..., :3].min() < 0.9)


def test_a_snapshot_has_two_pictures_and_a_table(known_home: Path) -> None:
    found = pictures(required(Home(known_home)))
    assert list(found) == ["runs_per_board", "record_progress", "changes"]
    for name in ("runs_per_board", "record_progress"):
        before, _, content = found[name].partition("](data:image/png;base64,")
        assert before.startswith("![")
        assert is_a_picture(base64.b64decode(content.removesuffix(")")))
        assert len(content) < 200_000
    assert found["changes"] == "Nothing has moved."


def test_equal_rows_give_equal_pictures_and_other_rows_other_ones() -> None:
    rows = [("gpumode-kernelbot", "a", 5, 2), ("sol-execbench", "b", 1, 0)]
    assert runs_per_board(rows) == runs_per_board(rows)
    assert runs_per_board(rows) != runs_per_board(rows[:1])


def test_names_that_are_no_formulas_and_have_no_glyph_are_drawn(recwarn: pytest.WarningsRecorder) -> None:
    now = datetime(2028, 2, 29, tzinfo=UTC)
    assert is_a_picture(runs_per_board([("gpumode-kernelbot", HOSTILE, 5, 2)]))
    assert is_a_picture(record_progress([(HOSTILE, "$", now, 1.0), (HOSTILE, "$", now + timedelta(days=3), 0.5)]))
    assert list(recwarn) == []


def test_a_warehouse_without_runs_or_records_has_pictures_too() -> None:
    assert is_a_picture(runs_per_board([]))
    assert is_a_picture(record_progress([]))


def test_a_change_is_a_row_of_the_table() -> None:
    text = changes_table([
        ("record", "amd-mla", 0, "MI300X", "ann", 2, 1, 5.0, 4.109153333, "ns"),
        ("left", "amd-mla", None, None, None, 7, None, 1e9, None, None),
    ])  # fmt: skip
    assert text.splitlines() == [
        "| what | board | GPU | who | rank | value |",
        "| --- | --- | --- | --- | --- | --- |",
        r"| record | amd\-mla, case 0 | MI300X | ann | 2 → 1 | 5 → 4.109 ns |",
        r"| left | amd\-mla | – | – | 7 → – | 1e\+09 → – |",
    ]


def test_upstream_s_names_are_no_markup_in_the_table() -> None:
    [_, _, row] = changes_table([("entered", HOSTILE, 0, HOSTILE, HOSTILE, None, 1, None, 1.0, "ns")]).splitlines()
    assert row.startswith(r"| entered | \$\\frac\{1\}\{0\}\$ \!\[x\]\(https:\/\/example.org\/x.png")
    assert "![" not in row
    assert "\x1b" not in row
    assert "<img" not in row.replace(r"\<", "")


def test_pictures_are_made_without_a_folder_to_write_in(known_home: Path, tmp_path: Path) -> None:
    shutil.copytree(known_home / "snapshots", tmp_path / "snapshots", symlinks=True)
    before = sorted(tmp_path.rglob("*"))
    pictures(required(Home(tmp_path)))
    assert sorted(tmp_path.rglob("*")) == before
