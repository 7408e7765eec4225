"""The Dagster location: every asset and check, and the job that runs them each night."""

from __future__ import annotations

import dagster as dg

from assets import published
from assets.kernelbot import assets as kernelbot
from assets.sol_execbench import assets as sol_execbench
from pipelines.resources import Request, Warehouse

# One process holds the home's lock from the first step to the last, so all steps run in it.
nightly = dg.define_asset_job(
    "nightly",
    selection=dg.AssetSelection.all(),
    description="Pull, read, normalise, rank and publish.",
    executor_def=dg.in_process_executor,
)

definitions = dg.Definitions(
    assets=[
        kernelbot.raw_files,
        kernelbot.rows,
        kernelbot.tables,
        sol_execbench.raw_answers,
        sol_execbench.answers,
        sol_execbench.tables,
        published.ranked,
        published.draft,
        published.snapshot,
    ],
    asset_checks=published.draft_checks,
    jobs=[nightly],
    resources={"warehouse": Warehouse(), "request": Request()},
)
