"""One ingest, or the same job with assets and checks that do nothing, in this process; the last line is what it took.

python -m benchmarks.jobs ingest|empty HOME SAVED [none|index|mirror]
"""

from __future__ import annotations

import json
import logging
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from pipelines import ingest as ingesting
from pipelines.definitions import definitions
from pipelines.instance import instance_of
from pipelines.resources import Request
from warehouse.home import Home
from warehouse.snapshots import latest


def main() -> None:
    """Run the job that the first argument names, and print what it took and its stages, with the runs made, as JSON."""
    job, home, saved = sys.argv[1], Home(Path(sys.argv[2])), sys.argv[3]
    code: Any = sys.argv[4] if len(sys.argv) > 4 else "none"
    stages = _Stages()
    logging.getLogger("kernelmart").addHandler(stages)
    logging.getLogger("kernelmart").setLevel(logging.INFO)
    started, before = time.monotonic(), time.process_time()
    if job == "ingest":
        ingesting.ingest(home, Request(folder=saved, code=code))
    else:
        with home.locked(), instance_of(home) as instance:
            empty().resolve_job_def("empty").execute_in_process(
                instance=instance, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
            )
    seconds = time.monotonic() - started
    snapshot = latest(home)
    runs = snapshot.manifest["tables"]["runs"]["rows"] if snapshot else 0
    megabytes = max([_resident_at_most(), *(most for _, _, most in stages.found.values())])
    said = {"seconds": seconds, "processor": time.process_time() - before, "megabytes": megabytes, "runs": runs}
    print(json.dumps({**said, "stages": stages.found}))


def run_apart(job: str, home: Path, saved: Path, code: str = "none") -> dict[str, Any]:
    """What a job took in a process of its own: its memory is its own then, and allocated as an ingest's always is."""
    command = [sys.executable, "-m", "benchmarks.jobs", job, str(home), str(saved), code]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{job} of {saved}: {done.stderr.strip()}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


class _Stages(logging.Handler):
    """Seconds and processor seconds of each step, by its name, out of the lines that an ingest logs; and the MiB that
    were resident at most since the step before ended, where the system tells."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, tuple[float, float, float]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if match := re.fullmatch(r"step (\S+) .*\bseconds=(\S+) processor_seconds=(\S+)", line):
            self.found[match[1]] = (float(match[2]), float(match[3]), _resident_at_most())


def _resident_at_most() -> float:
    """MiB that this process held at most since this was last asked, or since it began."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    [most] = re.findall(r"VmHWM:\s+([0-9]+) kB", status.read_text())
    Path("/proc/self/clear_refs").write_text("5")
    return int(most) / 1024


def empty() -> dg.Definitions:
    """Assets and checks of the same names and shape, none of which does anything."""
    graph = definitions.resolve_asset_graph()
    made: dict[str, list[dg.AssetSpec]] = {}
    for node in definitions.assets or []:
        if isinstance(node, dg.AssetsDefinition):
            specs = [dg.AssetSpec(spec.key, deps=[dep.asset_key for dep in spec.deps]) for spec in node.specs]
            made[node.op.name] = specs
    checks = [dg.AssetCheckSpec(key.name, asset=key.asset_key) for key in sorted(graph.asset_check_keys)]
    assets = [_nothing(name, specs) for name, specs in made.items()]
    job = dg.define_asset_job("empty", selection=dg.AssetSelection.all(), executor_def=dg.in_process_executor)
    return dg.Definitions(assets=assets, asset_checks=[_no_checks(checks)], jobs=[job])


def _nothing(name: str, specs: list[dg.AssetSpec]) -> dg.AssetsDefinition:
    @dg.multi_asset(name=name, specs=specs)
    def _make() -> Iterator[dg.MaterializeResult[Any]]:
        for spec in specs:
            yield dg.MaterializeResult(asset_key=spec.key)

    return _make


def _no_checks(specs: list[dg.AssetCheckSpec]) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(name="empty_checks", specs=specs)
    def _check() -> Iterator[dg.AssetCheckResult]:
        for spec in specs:
            yield dg.AssetCheckResult(check_name=spec.name, asset_key=spec.asset_key, passed=True)

    return _check


if __name__ == "__main__":
    main()
