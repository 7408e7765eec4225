"""Whatever the seed: every row of a generated corpus has the fate that the generator says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from assets.kernelbot import build as kernelbot
from assets.sol_execbench import build as sol_execbench
from replica.corpus import write_corpus
from warehouse.parts import PartStore
from warehouse.raw import RawStore


def tables_of(folder: Path, scratch: Path) -> Callable[[str], list[tuple[Any, ...]]]:
    """Both sources of a folder read and normalised; asks `runs`, `rejects` and `source_files` of them."""
    store, raw = PartStore(scratch / "tables"), RawStore(scratch / "raw")
    boards = raw.collect_folder("gpumode-kernelbot", folder / "kernelbot", kernelbot.PATTERNS)
    answers = raw.collect_folder("sol-execbench", folder / "sol_execbench", sol_execbench.PATTERNS)
    made = [
        kernelbot.build_tables(store, kernelbot.read_files(store, boards, None), scratch),
        sol_execbench.build_tables(store, sol_execbench.check_answers(answers, None)),
    ]
    connection = duckdb.connect()
    for name in ("runs", "rejects", "source_files"):
        paths = [str(store.root / file) for files in made for file in files[name]]
        connection.read_parquet(paths, hive_partitioning=False).create_view(name)
    return lambda text: connection.execute(text).fetchall()


@settings(max_examples=2, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(min_value=2, max_value=10**6))
def test_every_row_of_any_corpus_has_the_fate_that_the_generator_says(seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        corpus = write_corpus(Path(name) / "corpus", seed=seed, scale=0.001)
        ask = tables_of(corpus.folder, Path(name))
        counts = {
            (source, locator): tuple(found)
            for source, locator, *found in ask(
                "select source, locator, rows_kept, rows_duplicate, rows_rejected from source_files"
            )
        }
        assert counts == {
            key: (stated.rows_kept, stated.rows_duplicate, stated.rows_rejected) for key, stated in corpus.files.items()
        }
        reasons = {
            (locator, item): reason for locator, item, reason in ask("select locator, item, reason from rejects")
        }
        runs: dict[tuple[str, str], list[tuple[str, bool]]] = {}
        for locator, item, run_id, eligible in ask("select locator, item, run_id, eligible from runs order by run_id"):
            runs.setdefault((locator, item), []).append((run_id, eligible))
        for expected in corpus.expectations:
            key = (expected.locator, expected.item)
            if expected.outcome == "rejected":
                assert reasons.get(key) == expected.reason, expected
            elif expected.outcome == "duplicate":
                assert key not in runs, expected
            elif expected.run_ids is not None:
                assert [run_id for run_id, _ in runs.get(key, [])] == sorted(expected.run_ids), expected
                if expected.eligible is not None:
                    assert {eligible for _, eligible in runs.get(key, [])} <= {expected.eligible}, expected
