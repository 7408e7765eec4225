"""The Dagster location: every asset and check, the jobs that run them, and when."""

from __future__ import annotations

import dagster as dg

from assets import published
from assets.kernelbot import assets as kernelbot
from assets.sol_execbench import assets as sol_execbench
from pipelines.jobs import nightly, redo
from pipelines.resources import Request, Upstream, Warehouse
from pipelines.schedules import SCHEDULES, SENSORS

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
        published.elsewhere,
    ],
    asset_checks=published.draft_checks,
    jobs=[nightly, redo],
    # Assets that are chosen on the pages, too, hold the home's lock from the first step to the last.
    executor=dg.in_process_executor,
    schedules=SCHEDULES,
    sensors=SENSORS,
    resources={"warehouse": Warehouse(), "request": Request(), "upstream": Upstream()},
)
