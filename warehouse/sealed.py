"""JSON files of which damage is seen: each states the digest of all else that it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from warehouse.identity import digest

SEAL = "digest"


def seal_of(value: Any) -> str:
    """The digest of a JSON value as it is written; canonical JSON has no form for some that a damaged file may hold."""
    return digest(json.dumps(value, sort_keys=True))


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with the digest of what it says."""
    return {**value, SEAL: seal_of(value)}


def unsealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object without its digest."""
    return {name: one for name, one in value.items() if name != SEAL}


def is_sealed(value: Any) -> bool:
    """Whether a JSON value says what was written."""
    return isinstance(value, dict) and value == sealed(unsealed(value))
