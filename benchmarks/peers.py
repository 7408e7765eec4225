"""Plain ways to make runs of KernelBot's files: the tests' oracle, row by row, and the same idea in pandas."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pandas as pd

from assets.kernelbot.facts import boards_as_documents
from tests import oracle

_CASE_MEAN = re.compile(r"benchmark\.(\d+)\.mean")


def row_by_row(saved: Path) -> int:
    """All tables of a folder, one row at a time; how many runs they have."""
    facts = {"boards": json.loads(json.dumps(boards_as_documents()))}
    return len(oracle.read(saved, facts)["runs"])


def with_pandas(saved: Path) -> int:
    """Runs of KernelBot's files with a digest and a rank each, of fewer columns and without a check; how many."""
    frames = []
    for path in [*sorted((saved / "kernelbot").glob("*_submissions.parquet")), saved / "kernelbot/submissions.parquet"]:
        rows = pd.read_parquet(path)
        frames.append(_cases(rows) if "run_result" in rows else _scores(rows))
    runs = pd.concat(frames, ignore_index=True)
    texts = runs.astype(str).to_dict("records")
    runs["run_digest"] = [hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest() for row in texts]
    ranked = runs[runs["passed"].fillna(False).astype(bool) & (runs["mode"] == "leaderboard") & (runs["value"] > 0)]
    runs["rank"] = ranked.groupby(["board", "runner", "case"], dropna=False)["value"].rank("dense")
    return len(runs)


def _scores(rows: pd.DataFrame) -> pd.DataFrame:
    made = rows.reindex(columns=["submission_id", "problem_name", "runner", "mode", "passed", "score"])
    return made.rename(columns={"problem_name": "board", "score": "value"}).assign(case=None)


def _cases(rows: pd.DataFrame) -> pd.DataFrame:
    machine = rows["run_system_info"].map(lambda value: (value or {}).get("gpu"))
    shared = rows.reindex(columns=["submission_id", "leaderboard_id", "run_mode", "run_passed"])
    shared = shared.set_axis(["submission_id", "board", "mode", "passed"], axis=1).assign(runner=machine)
    means = rows["run_result"].map(
        lambda result: [
            (int(match[1]), value)
            for name, value in (result or {}).items()
            if value is not None and (match := _CASE_MEAN.fullmatch(name))
        ]
    )
    long = shared.assign(entry=means).explode("entry", ignore_index=True)
    long["case"] = long["entry"].map(lambda entry: entry[0] if isinstance(entry, tuple) else None)
    values = long["entry"].map(lambda entry: entry[1] if isinstance(entry, tuple) else None)
    return long.assign(value=pd.to_numeric(values, errors="coerce")).drop(columns="entry")
