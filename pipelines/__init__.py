"""When and how things run: Dagster definitions, resources and the command line."""

import ctypes
import os

# Read when pyarrow is loaded. What its own allocators have freed they keep, for each thread that had some, and over an
# ingest's stages that adds up; the system's gives it back when asked (`warehouse.memory`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# Once a large piece of memory has come and gone, glibc keeps all up to its size for later. From this size on, which
# columns of some thousand rows have, it gives each back at once. And it keeps what was freed apart for each thread; of
# one heap for all of them less is kept. Other libraries of C have no such settings.
_MAPPED_FROM, _MOST_ARENAS = -3, -8
if hasattr(libc := ctypes.CDLL(None), "mallopt"):
    libc.mallopt(_MAPPED_FROM, 1 << 20)
    libc.mallopt(_MOST_ARENAS, 1)
