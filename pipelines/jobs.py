"""The jobs: what is run each night, and the same for a few files that are to be fetched again."""

from __future__ import annotations

from typing import Any

import dagster as dg

# What the launchpad of `redo` begins with; both jobs take the same, whose form is that of `Request`.
CONFIG: dict[str, Any] = {"resources": {"request": {"config": {"sources": [], "files": []}}}}
# A run whose process died is run again from its first step: what it left behind may be older than another's.
_TAGS = {"dagster/retry_strategy": "ALL_STEPS"}


def _job(name: str, description: str, config: dict[str, Any] | None = None) -> Any:
    # One process holds the home's lock from the first step to the last, so all steps run in it.
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.all(),
        description=description,
        executor_def=dg.in_process_executor,
        config=config,
        tags=_TAGS,
    )


nightly = _job(
    "nightly",
    "Pull, read, normalise, rank and publish. Config of the resource `request`: `sources`, only these, all where "
    "empty; `files`, only these files or answers, by their locators; `accept_loss`, publish also what has shrunk.",
)
redo = _job(
    "redo",
    "The same for files that went wrong: name their locators in `files`, as the stale lines of a run do; they are "
    "fetched again even if they are known, and everything else is as the last ingest left it.",
    CONFIG,
)
