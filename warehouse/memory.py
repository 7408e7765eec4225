"""Memory that goes back to the operating system: a stage must not keep what the next one needs."""

from __future__ import annotations

import pyarrow as pa


def give_back() -> None:
    """Give back what Arrow, and with its system allocator anybody in this process, has freed."""
    pa.default_memory_pool().release_unused()
