"""What must be shown with the data, as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

FILE = "ATTRIBUTION.md"


def attribution(sources: Iterable[Mapping[str, Any]]) -> str:
    """Names, addresses, licences and terms of sources, rows of the table `sources`, as Markdown."""
    lines = ["# Attribution", ""]
    for source in sources:
        lines += [
            f"## {source['name']}",
            "",
            f"{source['attribution']}, {source['url']}",
            "",
            f"Licence: {source['license']}. {source['terms']}",
            "",
        ]
    return "\n".join(lines)
