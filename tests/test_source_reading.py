"""The sources of a submissions file: bytes as they are, whatever the export's types."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.submission_sources import read
from assets.submission_sources.scratch import Scratch
from warehouse.errors import UnreadableError
from warehouse.raw import RawFile

TEXTS = [
    b"import torch\r\n",
    None,
    b"",
    b"# caf\xe9 \xff\x00\n",
    "# é\n".encode(),
    b"import torch\r\n",
    b"\\x41",
    b"\\xZZ",
]


def raw_file(folder: Path, codes: pa.Array, ids: Iterable[Any] | None = None, **options: Any) -> RawFile:
    """A submissions file with some sources, kept whole."""
    path = folder / "submissions.parquet"
    numbers = pa.array(range(len(codes)) if ids is None else list(ids))
    pq.write_table(pa.table({"submission_id": numbers, "code": codes}), path, **options)
    digest = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    return RawFile(path.name, path, digest, path.stat().st_size, datetime.now(UTC))


def digest_of(text: bytes | None) -> str | None:
    return "sha256:" + hashlib.sha256(text).hexdigest() if text else None


def as_view(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    """Bytes as text that is not looked at."""
    return pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary()).view(kind)


def digests(file: RawFile) -> list[dict[str, Any]]:
    return [row for batch in read.digests(file) for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_is_its_bytes_and_hex_is_what_it_spells(tmp_path: Path, kind: pa.DataType) -> None:
    rows = digests(raw_file(tmp_path, as_view(TEXTS, kind)))
    expected = [*TEXTS[:6], b"A", b"\\xZZ"]
    assert [row["source_digest"] for row in rows] == [digest_of(text) for text in expected]
    assert [row["source_bytes"] for row in rows] == [len(text) if text else None for text in expected]
    assert [row["item"] for row in rows] == list(range(8))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_are_never_taken_for_hex(tmp_path: Path, kind: pa.DataType) -> None:
    rows = digests(raw_file(tmp_path, pa.array(TEXTS, kind)))
    assert [row["source_digest"] for row in rows] == [digest_of(text) for text in TEXTS]


def test_hex_text_of_an_old_export_is_read_as_bytes(tmp_path: Path) -> None:
    spelled = [None if text is None else "\\x" + text.hex().upper() for text in TEXTS]
    for codes in (pa.array(spelled), pa.array(spelled).dictionary_encode()):
        assert [row["source_digest"] for row in digests(raw_file(tmp_path, codes))] == list(map(digest_of, TEXTS))


def test_a_column_of_nothing_or_of_numbers_has_no_sources(tmp_path: Path) -> None:
    for codes in (pa.nulls(3), pa.array([1, 2, 3])):
        assert [row["source_digest"] for row in digests(raw_file(tmp_path, codes))] == [None] * 3
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"submission_id": [1]}), plain)
    assert not read.has_sources(RawFile("plain.parquet", plain, "sha256:0", 1, datetime.now(UTC)))


def test_rows_without_an_id_are_left_out_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    rows = digests(raw_file(tmp_path, pa.array(["a", "b", "c"]), ids=["7", "none", "9"]))
    assert [(row["item"], row["submission_id"]) for row in rows] == [(0, 7), (2, 9)]


def test_some_rows_texts_come_in_order(tmp_path: Path) -> None:
    texts = [b"text %d" % number * (1 + number % 50) for number in range(5000)]
    file = raw_file(tmp_path, pa.array(texts), row_group_size=700)
    chosen = np.arange(3, 5000, 41)
    assert list(read.texts(file, chosen)) == [(int(row), texts[row]) for row in chosen]
    assert list(read.texts(file, [])) == []


def test_large_texts_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    texts = [b"x" * 3_000_000 + b"%d" % number for number in range(8)]
    file = raw_file(tmp_path, pa.array(texts))
    assert [row["source_digest"] for row in digests(file)] == [digest_of(text) for text in texts]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = raw_file(tmp_path, pa.array(["a" * 5000, "b" * 5000]), compression="zstd", write_page_checksum=True)
    content = bytearray(file.path.read_bytes())
    place = content.index(b"\x28\xb5\x2f\xfd", 200)
    content[place + 8 : place + 12] = b"\0\1\2\3"
    file.path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"submissions\.parquet: its sources cannot be read: .*; fetch it again"):
        digests(file)


def test_texts_in_a_scratch_file_are_found_by_digest(tmp_path: Path) -> None:
    texts = {str(digest_of(text)): text for text in (b"%d" % number * 300 for number in range(500))}
    with Scratch(tmp_path / "deep" / "texts") as scratch:
        for digest, text in texts.items():
            scratch.add(digest, text)
        assert len(scratch) == 500
        assert list(scratch.digests()) == sorted(texts)
        assert all(scratch.get(digest) == text for digest, text in texts.items())
        assert scratch.get(str(digest_of(b"another"))) is None
        scratch.add(str(digest_of(b"another")), b"another")
        assert scratch.get(str(digest_of(b"another"))) == b"another"
    assert list((tmp_path / "deep").iterdir()) == []
    with Scratch(tmp_path / "empty") as scratch:
        assert scratch.get(str(digest_of(b"x"))) is None
