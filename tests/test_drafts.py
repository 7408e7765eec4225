"""What a draft takes over from the snapshot before, and what of it is sorted together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.small_snapshot import draft, publish, small_results
from warehouse import drafts, parquet, snapshots
from warehouse.contracts import TABLES
from warehouse.home import Home
from warehouse.threads import in_threads


def places(snapshot: snapshots.Snapshot, name: str) -> dict[str, int]:
    """Inode of each Parquet file of a table, by its name."""
    return {path.name: path.stat().st_ino for path in snapshot.parquet(name)}


def test_parts_made_of_the_same_are_the_files_of_the_snapshot_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshots.required(publish(tmp_path))
    written: list[str] = []
    original = parquet.write_parquet

    def write(path: Path, *given: Any, **named: Any) -> int:
        written.append(path.parent.name)
        return original(path, *given, **named)

    monkeypatch.setattr(parquet, "write_parquet", write)
    made = draft(Home(tmp_path))
    assert made.manifest["content_digest"] == before.manifest["content_digest"]
    # Runs and their figures are not even written, the other tables are and then give way.
    assert not {"runs", "measurements"} & set(written)
    assert "submissions" in written
    for name in ("runs", "measurements", "submissions", "ranks"):
        assert places(made, name) == places(before, name)
    assert list(made.damage()) == []


def test_a_part_of_other_runs_is_written(tmp_path: Path) -> None:
    before = snapshots.required(publish(tmp_path))
    changed = small_results()
    board = changed[0]["problem"]
    for row in changed:
        if row["problem"] == board and row["primary_value"] is not None:
            row["primary_value"] += 1
    made = draft(Home(tmp_path), changed)
    old, new = places(before, "runs"), places(made, "runs")
    assert len(old) == len(new)
    other = [path for path in made.parquet("runs") if new[path.name] != old.get(path.name)]
    assert len(other) == 1
    assert set(pq.read_table(other[0])["problem"].to_pylist()) == {board}


def test_a_damaged_snapshot_gives_nothing_to_the_next(tmp_path: Path) -> None:
    before = snapshots.required(publish(tmp_path))
    path = before.parquet("runs")[0]
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    made = draft(Home(tmp_path))
    assert list(made.damage()) == []
    assert not set(places(made, "runs").values()) & set(places(before, "runs").values())


@pytest.mark.parametrize(("most", "threads"), [(1, 1), (3, 1), (1, 2), (1, 3), (10_000, 2)])
def test_neither_how_many_runs_are_sorted_at_once_nor_how_many_threads_do_it_changes_anything(
    most: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = draft(Home(tmp_path / "expected"))
    monkeypatch.setattr(drafts, "RUNS_AT_ONCE", most)
    monkeypatch.setattr(drafts, "_LEAST_MEMORY", 20_000_000)
    monkeypatch.setattr(drafts, "_MOST_THREADS", threads)
    asked: list[int] = []

    def counted(work: Any, jobs: Any, wanted: int) -> Any:
        asked.append(wanted)
        return in_threads(work, jobs, wanted)

    monkeypatch.setattr(drafts, "in_threads", counted)
    made = draft(Home(tmp_path / "made"))
    assert asked == [threads]
    assert made.manifest["content_digest"] == expected.manifest["content_digest"]
    parquet = [
        {name: stated["sha256"] for name, stated in snapshot.manifest["files"].items() if "parquet/" in name}
        for snapshot in (made, expected)
    ]
    # What says when the snapshot was made differs.
    differing = {name for name, _ in set(parquet[0].items()) ^ set(parquet[1].items())}
    assert {name.split("/")[1] for name in differing} == {"snapshot"}
    assert len(parquet[0]) == len(parquet[1]) > len(TABLES)


def test_row_groups_of_a_clustered_part_have_one_value_each(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    names = ["b", None, "a", "b", "a", "c"] * 50
    rows = pa.table({"name": pa.array(names, pa.string()), "number": pa.array(range(300), pa.int64())})
    count = parquet.write_part(path, rows.to_batches(max_chunksize=77), rows.schema, clustered_by="name")
    written = pq.ParquetFile(path)
    groups = [written.read_row_group(i)["name"].unique().to_pylist() for i in range(written.num_row_groups)]
    assert count == 300
    assert sorted(groups, key=str) == [["a"], ["b"], ["c"], [None]]
    assert written.metadata.row_group(0).column(0).is_stats_set
    assert not written.metadata.row_group(0).column(1).is_stats_set
    assert written.read().sort_by("number")["name"].to_pylist() == names
