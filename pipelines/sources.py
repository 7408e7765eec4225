"""What a snapshot says of a submission as an implementation: its source, what that proves, its evidence, its change."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from pipelines.records import NotFoundError, Record, rows

if TYPE_CHECKING:
    from warehouse.elsewhere import Published
    from warehouse.snapshots import Snapshot

# From what is only said to what was done here again; there is only the first so far.
EVIDENCE_LEVELS = ("reported",)


@dataclass(frozen=True)
class Texts:
    """Parquet files of a snapshot that hold texts: sources by digest, and diffs by submission."""

    artifact_texts: Sequence[Path] = ()
    change_texts: Sequence[Path] = ()


def implementation(connection: duckdb.DuckDBPyConnection, submission_key: str) -> Record:
    """What the page of a submission adds to its facts.

    `artifact` (None where no digest is known), `techniques`, `implementations` with their revision digests,
    `measured_on`, `evidence` (the best run of each cohort), `evidence_level` (the best there is, None without a ranked
    run) and `change` (None for an author's first submission on a board).
    """
    artifact = _one(rows(connection, "artifact_of_submission", submission_key=submission_key))
    evidence = rows(connection, "evidence_of_submission", submission_key=submission_key)
    levels = [level for level in EVIDENCE_LEVELS if any(run["evidence_level"] == level for run in evidence)]
    return {
        "artifact": artifact,
        "techniques": rows(connection, "techniques_of_source", source_digest=artifact["source_digest"])
        if artifact
        else [],
        "implementations": rows(connection, "implementations_of_submission", submission_key=submission_key),
        "measured_on": rows(connection, "measured_on", submission_key=submission_key),
        "evidence": evidence,
        "evidence_level": levels[-1] if levels else None,
        "change": _one(rows(connection, "change_of_submission", submission_key=submission_key)),
    }


def texts_of(snapshot: Snapshot) -> Texts:
    """The texts that a snapshot keeps."""
    return Texts(*(snapshot.parquet(name) for name in ("artifact_texts", "change_texts")))


def texts_elsewhere(published: Published, record: Record, *, with_diff: bool) -> Texts:
    """The published texts that those of a submission are among, fetched into the cache.

    Args:
        published: the snapshot.
        record: what `implementation` says of the submission.
        with_diff: whether the diffs are asked for, too: all of them are in one file.
    """
    artifact, change = record["artifact"], record["change"]
    # A file has the sources whose digests begin alike.
    digit = artifact["source_digest"].removeprefix("sha256:")[:1] if artifact else None
    return Texts(
        _fetched(published, "artifact_texts", digit) if artifact else [],
        _fetched(published, "change_texts") if with_diff and change and change["lines_added"] is not None else [],
    )


def _fetched(published: Published, table: str, digit: str | None = None) -> list[Path]:
    """The files of a table of texts, or of its texts whose digests begin with a digit."""
    places = sorted(place for place in published.files if place.startswith(f"parquet/{table}/"))
    of_digit = [place for place in places if place.rpartition("/")[2].partition("-")[0] in (digit, "all")]
    return [published.file(place) for place in (of_digit if digit else places)]


def with_texts(record: Record, texts: Texts) -> Record:
    """A submission's record with `source_text`, or `source_base64` where the bytes are no UTF-8, and `diff`.

    Each is None where the snapshot has none.
    """
    try:
        content = source_text(record, texts)
    except NotFoundError:
        content = None
    try:
        text, binary = content and content.decode("utf-8"), None
    except UnicodeDecodeError:
        text, binary = None, content and b64encode(content).decode("ascii")
    diff = change_text(record["submission_key"], texts)
    return {**record, "source_text": text, "source_base64": binary, "diff": diff}


def source_text(record: Record, texts: Texts) -> bytes:
    """The bytes of a submission's source.

    Args:
        record: what `implementation` says of it.
        texts: the snapshot's texts.

    Raises:
        NotFoundError: where the snapshot has none.
    """
    from warehouse.texts import find_text

    artifact = record["artifact"]
    if artifact is None:
        raise NotFoundError("no source is known of this submission; ingest with --code index reads the sources")
    digest = artifact["source_digest"]
    for column in ("text", "bytes"):
        value = find_text(texts.artifact_texts, digest, column)
        if value is not None and value.is_valid:
            return bytes(value.as_buffer())
    raise NotFoundError(f"the text of {digest} is not kept here; ingest with --code mirror keeps the sources' texts")


def change_text(submission_key: str, texts: Texts) -> str | None:
    """The diff against the previous submission, where the snapshot has one."""
    from warehouse.texts import find_text

    value = find_text(texts.change_texts, submission_key, "diff")
    return value.as_py() if value is not None else None


def _one(found: list[Record]) -> Record | None:
    return found[0] if found else None
