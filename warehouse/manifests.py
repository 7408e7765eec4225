"""The form of a snapshot's manifest: what stands in one that was tampered with may be anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warehouse.history import moment

_TEXTS = ("snapshot_id", "content_digest", "inputs_key")
# Larger is no file and no table.
_MOST = 1 << 62


def is_manifest(value: Any) -> bool:
    """Whether a JSON value has all that a manifest states, in the form in which it states it."""
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(name), str) for name in _TEXTS)
        and moment(value.get("created_at")) is not None
        and _all(value.get("inputs"), _is_input)
        and _all(value.get("tables"), _is_table)
        and "runs" in value["tables"]
        and "".join(value["tables"]).isascii()
        and _all(value.get("files"), _is_file)
    )


def _all(value: Any, is_entry: Callable[[dict[str, Any]], bool]) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, dict) and is_entry(entry) for entry in value.values())


def _is_input(entry: dict[str, Any]) -> bool:
    files, revision = entry.get("files"), entry.get("revision")
    return (
        isinstance(files, list)
        and all(isinstance(file, dict) and _has_texts(file, "content_digest", "locator") for file in files)
        and (revision is None or isinstance(revision, str))
    )


def _is_table(entry: dict[str, Any]) -> bool:
    digests = entry.get("digests")
    if not _is_count(entry.get("rows")) or not isinstance(digests, dict) or not _has_texts(digests, *digests):
        return False
    return "".join((*digests, *digests.values())).isascii()


def _is_file(entry: dict[str, Any]) -> bool:
    return _is_count(entry.get("size_bytes")) and _has_texts(entry, "sha256")


def _has_texts(entry: dict[str, Any], *names: str) -> bool:
    return all(isinstance(entry.get(name), str) for name in names)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST
