"""Counts and diffs of two texts; `git` itself says whether a diff is one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assets.submission_sources import diffs
from assets.submission_sources.diffs import Difference, difference, matching_blocks

_LINES = st.lists(
    st.sampled_from(
        [
            b"a\n",
            b"b\n",
            b"c\r\n",
            b"c\n",
            b"\n",
            b"\r\n",
            b"x\ry\n",
            b"x\x0cy\n",
            b"\xe2\x80\xa8z\n",
            b"\0\n",
            b"-- a\n",
            b"\\ q\n",
        ]
    ),
    max_size=24,
)
_LAST = st.sampled_from([b"", b"", b"a", b"b\r", b"\t "])
_TEXTS = st.builds(lambda lines, last: b"".join(lines) + last, _LINES, _LAST)


def applied(folder: Path, old: bytes, diff: str) -> bytes:
    """What `git apply` makes of some bytes."""
    path = folder / "source"
    path.write_bytes(old)
    surroundings = {
        **os.environ,
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    done = subprocess.run(
        ["git", "apply", "-"], input=diff.encode(), cwd=folder, capture_output=True, env=surroundings, check=False
    )
    assert done.returncode == 0, done.stderr
    return path.read_bytes()


def common(first: list[bytes], second: list[bytes]) -> int:
    """Length of a longest common subsequence, from the whole table."""
    row = [0] * (len(second) + 1)
    for line in first:
        above, row = row, [0]
        for place, other in enumerate(second):
            row.append(above[place] + 1 if line == other else max(above[place + 1], row[place]))
    return row[-1]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=_TEXTS, new=_TEXTS)
def test_git_makes_the_new_bytes_of_the_old_ones(tmp_path: Path, old: bytes, new: bytes) -> None:
    found = difference(old, new)
    if old == new:
        assert found == Difference(0, 0, False, None)
    elif old and new:
        assert found.diff is not None
        assert applied(tmp_path, old, found.diff) == new


@settings(max_examples=100, deadline=None)
@given(old=_TEXTS, new=_TEXTS)
def test_counts_are_those_of_a_longest_common_subsequence_whatever_the_line_ends(old: bytes, new: bytes) -> None:
    first, second = (diffs.lines(text.replace(b"\r\n", b"\n")) for text in (old, new))
    same = common(first, second)
    found = difference(old, new)
    assert (found.lines_added, found.lines_removed) == (len(second) - same, len(first) - same)


def test_a_diff_has_three_lines_of_context() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("5\n", "five\n", 1).replace("18\n", "")
    assert difference(old.encode(), new.encode()).diff == (
        "--- a/source\n+++ b/source\n"
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n"
    )


def test_a_missing_final_newline_is_said() -> None:
    assert difference(b"a\nb", b"a\nb\n").diff == (
        "--- a/source\n+++ b/source\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )


def test_line_ends_that_changed_are_said_once(tmp_path: Path) -> None:
    old, new = b"a\r\nb\r\nc\r\n", b"a\nB\nc\n"
    found = difference(old, new)
    assert (found.lines_added, found.lines_removed, found.line_endings_changed) == (1, 1, True)
    assert applied(tmp_path, old, str(found.diff)) == new
    assert difference(b"a\r\nb\r\n", b"a\nb\n").lines_added == 0
    assert difference(b"a\r\nb\n", b"a\r\nc\n").line_endings_changed is False


def test_large_texts_long_lines_and_what_is_no_text_get_counts_only() -> None:
    for old, new in [
        (b"a\n" * 600_000, b"a\n" * 600_001),
        (b"x" * 10_001 + b"\n", b"y\n"),
        (b"\xff\n", b"y\n"),
    ]:
        found = difference(old, new)
        assert found.diff is None
        assert (found.lines_added or 0) >= 1
    assert difference(b"x" * 10_000 + b"\n", b"y\n").diff is not None
    assert difference(b"a\n", b"b\n", with_diff=False) == Difference(1, 1, False, None)


def test_a_text_of_too_many_lines_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "MOST_LINES", 10)
    assert difference(b"\n" * 10, b"x\n") == Difference(None, None, None, None)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 12), max_size=30), st.lists(st.integers(0, 12), max_size=30), st.sampled_from([0, 16, 64])
)
def test_texts_of_many_lines_are_matched_in_order_by_lines_that_are_equal(
    first: list[int], second: list[int], pairs: int
) -> None:
    ids = np.array(first, np.int64), np.array(second, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "_MOST_PAIRS", pairs)
        blocks = matching_blocks(*ids)
    after = (0, 0)
    for i, j, length in blocks:
        assert (i, j) >= after
        assert i >= after[0]
        assert j >= after[1]
        assert first[i : i + length] == second[j : j + length]
        after = (i + length, j + length)


def test_lines_that_each_text_has_once_hold_large_texts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "_MOST_PAIRS", 4)
    old = b"".join(b"line %d\n" % number for number in range(100))
    new = old.replace(b"line 40\n", b"").replace(b"line 70\n", b"other\n").replace(b"line 5\n", b"line 5\nnew\n")
    found = difference(old, new)
    assert (found.lines_added, found.lines_removed) == (2, 2)
