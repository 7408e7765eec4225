"""The texts that are kept: sources by their digest, and diffs by the submission that made the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from assets.submission_sources.artifacts import is_utf8
from warehouse.contracts import PARQUET_ONLY
from warehouse.texts import grouped

# One source is whole either as text or, where its bytes are no UTF-8, as bytes; the other is null.
ARTIFACT_TEXTS, CHANGE_TEXTS = (PARQUET_ONLY[name].arrow_schema() for name in ("artifact_texts", "change_texts"))


def artifact_texts(sources: Iterable[tuple[str, bytes]]) -> Iterator[pa.RecordBatch]:
    """Sources by digest as `ARTIFACT_TEXTS`, in batches of about a row group."""
    rows = ((digest, *((text, None) if is_utf8(text) else (None, text)), len(text)) for digest, text in sources)
    return grouped(rows, ARTIFACT_TEXTS)


def change_texts(diffs: Iterable[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """Diffs by submission as `CHANGE_TEXTS`, in batches of about a row group."""
    return grouped(((key, diff, len(diff)) for key, diff in diffs), CHANGE_TEXTS)
