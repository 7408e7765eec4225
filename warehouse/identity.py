"""Canonical JSON (RFC 8785), digests and names: what makes two facts the same fact.

A document is `{apiVersion, kind, metadata, spec}`; its digest covers everything but the metadata.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import rfc8785

API_VERSION = "kernelindex.dev/v1alpha1"
# Problems without facts carry a version of our own, so that they can never be taken for the registry's.
LOCAL_API_VERSION = "kernelmart/v1"
MAXIMUM_INTEGER = 2**53 - 1
NAME_LENGTH = 100
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class CanonicalError(ValueError):
    """The value has no canonical form: a number out of range, NaN, or text that is not Unicode."""


def canonical_json(value: Any) -> str:
    """The canonical JSON text of a value made of dicts, lists, text, numbers, booleans and None.

    Raises:
        CanonicalError: for NaN, infinities, integers beyond ±(2^53 − 1) and lone surrogates.
    """
    try:
        return rfc8785.dumps(value).decode("utf-8")
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise CanonicalError(str(error)) from error


def digest(content: str | bytes) -> str:
    """`sha256:<64 hex>` of text (as UTF-8) or bytes."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_digest(value: object) -> bool:
    """Whether a value is text of the form of a digest."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def document(kind: str, spec: dict[str, Any], api_version: str = API_VERSION) -> tuple[str, str]:
    """Canonical text of a document without metadata, and its digest."""
    text = canonical_json({"apiVersion": api_version, "kind": kind, "spec": spec})
    return text, digest(text)


def correctness_key(correctness: dict[str, Any]) -> str:
    """Digest by which a comparison key tells how correctness is judged."""
    return digest(canonical_json({"correctness": correctness}))


def kebab(text: str) -> str:
    """Lowercase words of `[a-z0-9]` joined by single hyphens, none at the ends, at most 100 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:NAME_LENGTH].strip("-")
