"""What NVIDIA SOL-ExecBench goes by, and on what terms its results may be passed on."""

from __future__ import annotations

from typing import Any

SOURCE = "sol-execbench"
TERMS: dict[str, Any] = {
    "source": SOURCE,
    "name": "NVIDIA SOL-ExecBench",
    "url": "https://research.nvidia.com/benchmarks/sol-execbench",
    "license": "site terms of the public leaderboard",
    "attribution": "NVIDIA SOL-ExecBench",
    "terms": "Facts of the public leaderboard may be republished with the source's name.",
    "redistributable": True,
    "freshness_days": 7,
}
