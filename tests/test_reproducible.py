"""The same inputs give the same snapshot to the byte, whatever the machine, the folder and the order of the parts."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.ranking import TABLE_NAMES, build_ranks
from replica.corpus import Corpus
from tests.commands import ingested_apart
from tests.conftest import SmallHome
from warehouse import drafts
from warehouse.contracts import RANKING_POLICY, TABLES
from warehouse.home import Home, read_json
from warehouse.parts import PartStore
from warehouse.snapshots import Snapshot, required

# They say when something was seen, or how a snapshot differs from the one before.
OF_THEIR_TIME = {"source_files", "drift", "sources", "snapshot", "movements"}
PROJECT = Path(__file__).resolve().parent.parent
PARTS = 4


@pytest.fixture(scope="module")
def snapshot(small_home: SmallHome) -> Snapshot:
    return required(Home(small_home.home))


# The home of the other tests was made by as many threads as there are processors.
@pytest.mark.parametrize(
    ("threads", "environment"),
    [
        (1, {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONUTF8": "0"}),
        (4 if len(os.sched_getaffinity(0)) != 4 else 2, {"TZ": "Pacific/Apia"}),
    ],
)
def test_any_number_of_threads_in_any_folder_zone_and_locale_makes_the_same_bytes(
    threads: int, environment: dict[str, str], small_corpus: Corpus, snapshot: Snapshot, tmp_path: Path
) -> None:
    # The same files at other paths, of another age.
    saved = shutil.copytree(small_corpus.folder, tmp_path / f"{threads} threads", copy_function=shutil.copyfile)
    counts = ("KERNELMART_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS")
    environment |= {**dict.fromkeys(counts, str(threads)), "PYTHONHASHSEED": str(threads)}
    made = ingested_apart(saved, tmp_path / "home", **environment)
    assert Home(tmp_path / "home").read_status()["checked_at"].endswith("+00:00")
    assert _bytes(made) == _bytes(snapshot)
    assert made.manifest["content_digest"] == snapshot.manifest["content_digest"]
    assert made.manifest["inputs"] == snapshot.manifest["inputs"]


@pytest.mark.parametrize("seed", [1, 2])
def test_parts_in_any_order_make_the_same_bytes(seed: int, snapshot: Snapshot, tmp_path: Path) -> None:
    home = Home(tmp_path)
    shuffle = random.Random(seed).shuffle
    parts = {name: list(_cut_up(snapshot, name, tmp_path / "made" / name, shuffle)) for name in TABLES}
    home.temporary.mkdir(parents=True)
    about = {name: snapshot.manifest[name] for name in ("ranking_policy", "code_version", "inputs", "inputs_key")}
    facts = pq.read_metadata(snapshot.parquet("runs")[0]).metadata[b"kernelmart.facts_revision"].decode()
    # What is made of other tables is made of them again, and not taken over.
    made = drafts.build(home, {**parts, "measurements": [], "snapshot": []}, {**about, "facts_revision": facts})
    assert _bytes(made) == _bytes(snapshot)
    assert made.manifest["content_digest"] == snapshot.manifest["content_digest"]


@pytest.mark.parametrize("seed", [1, 2])
def test_ranks_do_not_depend_on_the_order_of_runs(
    seed: int, small_home: SmallHome, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELMART_THREADS", str(seed * 2))
    shuffle = random.Random(seed).shuffle
    store = PartStore(tmp_path)
    parts = {
        name: [path.relative_to(tmp_path).as_posix() for path in _cut_up(snapshot, name, tmp_path / name, shuffle)]
        for name in ("runs", "submissions")
    }
    rows = _scores(Home(small_home.home))
    pq.write_table(rows.take(_shuffled(rows.num_rows, shuffle)), tmp_path / "scores.parquet")
    files = build_ranks(store, {**parts, "scores": ["scores.parquet"]}, RANKING_POLICY, tmp_path)
    for name in TABLE_NAMES:
        (file,) = files[name]
        made, expected = (_sorted(path, name) for path in ([tmp_path / file], snapshot.parquet(name)))
        assert len(made) == len(expected)
        assert [row for row in zip(made, expected, strict=True) if row[0] != row[1]] == [], name


def test_no_statement_adds_up_figures_in_whatever_order_they_come() -> None:
    by_chance = re.compile(r"\b(f?sum|f?avg|mean|stddev\w*|var_\w+|variance|product|geo\w*mean|kahan_sum)\s*\(")
    statements = [path for path in (PROJECT / "sql").rglob("*.sql") if path.parent.name not in ("queries", "checks")]
    found = [
        f"{path.relative_to(PROJECT)}:{number}"
        for path in statements
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if by_chance.search(line.partition("--")[0])
    ]
    assert len(statements) > 20
    # Lists have their order, and so have their sums.
    assert found == []


def _bytes(snapshot: Snapshot) -> dict[str, str]:
    """Digest of each Parquet file that must be the same, by its name, which holds the beginning of it."""
    return {
        name: stated["sha256"]
        for name, stated in snapshot.manifest["files"].items()
        if name.startswith("parquet/") and name.split("/")[1] not in OF_THEIR_TIME
    }


def _cut_up(snapshot: Snapshot, name: str, folder: Path, shuffle: Any) -> Iterator[Path]:
    """A table's rows in another order, in several files with row groups of odd sizes; the files in another order."""
    table = pa.concat_tables([pq.read_table(path, partitioning=None) for path in snapshot.parquet(name)])
    table = table.take(_shuffled(table.num_rows, shuffle))
    folder.mkdir(parents=True, exist_ok=True)
    bounds = [table.num_rows * number // PARTS for number in range(PARTS + 1)]
    numbers = list(range(PARTS))
    shuffle(numbers)
    for number in numbers:
        path = folder / f"{number}.parquet"
        rows = table.slice(bounds[number], bounds[number + 1] - bounds[number])
        pq.write_table(rows, path, row_group_size=997)
        yield path


def _scores(home: Home) -> pa.Table:
    """What the standings of a home were made of."""
    made = [read_json(home.tables / "state" / source / "tables.json") for source in ("kernelbot", "sol_execbench")]
    return pa.concat_tables([pq.read_table(home.tables / file) for tables in made for file in tables["scores"]])


def _shuffled(count: int, shuffle: Any) -> pa.Array:
    order = list(range(count))
    shuffle(order)
    return pa.array(order, pa.int64())


def _sorted(paths: list[Path], name: str) -> list[dict[str, Any]]:
    rows = [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]
    return sorted(rows, key=lambda row: [row[column] for column in TABLES[name].key])
