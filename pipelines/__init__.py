"""When and how things run: Dagster definitions, resources and the command line."""

import os

# Read when pyarrow is loaded. What its own allocators have freed they keep, for each thread that had some, and over an
# ingest's stages that adds up; the system's gives it back when asked (`warehouse.memory`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
