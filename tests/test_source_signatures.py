"""Signatures in a file are those that were put there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from assets.submission_sources.signatures import Signatures

WIDTH = 6
COUNT = 20_000


def test_columns_and_rows_are_those_that_were_put_there_whatever_the_batches(tmp_path: Path) -> None:
    numbers = np.arange(COUNT * WIDTH, dtype="<u4").reshape(COUNT, WIDTH)
    column = pa.array([row.tobytes() for row in numbers], pa.binary(4 * WIDTH))
    with Signatures([column.slice(0, 7), column.slice(7)], WIDTH, tmp_path) as signatures:
        assert np.array_equal(signatures.columns(2, 5), numbers[:, 2:5])
        assert np.array_equal(signatures.rows(np.array([19_999, 3, 7])), numbers[[19_999, 3, 7]])
        assert signatures.rows(np.array([], np.int64)).shape == (0, WIDTH)
    assert list(tmp_path.iterdir()) == []


def test_a_signature_that_is_not_there_keeps_its_row(tmp_path: Path) -> None:
    one = np.arange(WIDTH, dtype="<u4")
    with Signatures([pa.array([None, one.tobytes()], pa.binary(4 * WIDTH))], WIDTH, tmp_path) as signatures:
        assert signatures.rows(np.array([1, 0])).tolist() == [one.tolist(), [0] * WIDTH]
        assert signatures.columns(0, 1).tolist() == [[0], [0]]
    with Signatures([], WIDTH, tmp_path) as signatures:
        assert signatures.columns(0, 2).shape == (0, 2)
