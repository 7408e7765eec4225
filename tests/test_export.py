"""`kernelmart export`: every value as the tables have it, the same bytes each time, whole or not at all."""

from __future__ import annotations

import csv
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets import catalogue
from tests.commands import printed, refused, run
from tests.conftest import SmallHome
from tests.small_snapshot import case_result, publish, small_results
from warehouse import exports
from warehouse.contracts import TABLES
from warehouse.files import sha256
from warehouse.home import Home
from warehouse.snapshots import Snapshot, required

FORMS = ("jsonl", "csv", "arrow")
# Texts that a spreadsheet would take for formulas, and others that only look a little so.
CELLS = {
    "=1+1": "'=1+1",
    "+49": "'+49",
    "-rf": "'-rf",
    "@SUM(A1)": "'@SUM(A1)",
    "\tcell": "'\tcell",
    "\rcell": "'\rcell",
    "\n=1": "'\n=1",
    "  =cmd|' /C calc'!A0": "'  =cmd|' /C calc'!A0",
    "＝1": "'＝1",
    "'quoted": "''quoted",
    "a=b": "a=b",
    "one, \"two\"": "one, \"two\"",
    "ünïcode ☃ \U0001f600": "ünïcode ☃ \U0001f600",
    " blank ": " blank ",
    "": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def exported(small_home: SmallHome, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All tables of the small home in each form."""
    folders = {form: tmp_path_factory.mktemp("exported") / form for form in FORMS}
    for form, folder in folders.items():
        line = printed(small_home.home, "export", "--format", form, "--to", str(folder))
        assert line.startswith(f"exported: {folder}: ")
    return folders


@pytest.fixture(scope="module")
def snapshot(small_home: SmallHome) -> Snapshot:
    return required(Home(small_home.home))


@pytest.fixture(scope="module")
def odd_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with runs whose texts and figures are odd."""
    odd = [
        case_result(
            70_000 + place, 0, 5_000_000.0 + place, "2025-07-01T00:00:00.123456", item=text, min_ns=-1.5,
            max_ns=1.0048658277929109e-05, std_ns=5e-324, sample_count=2**53 + 1, flags=["", 'a"b', "c,d"],
        )
        for place, text in enumerate(CELLS)
    ]  # fmt: skip
    return publish(tmp_path_factory.mktemp("odd_home"), [*small_results(), *odd]).root


def parquet_rows(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    return [row for path in snapshot.parquet(table) for row in pq.read_table(path, partitioning=None).to_pylist()]


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def of_odd_runs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        (row for row in rows if str(row["run_id"]).startswith("gpumode-kernelbot:submission/70")),
        key=lambda row: str(row["run_id"]),
    )


@pytest.mark.parametrize("table", list(TABLES))
def test_json_lines_have_every_value_exactly(exported: dict[str, Path], snapshot: Snapshot, table: str) -> None:
    # Other line ends than this one stand inside texts.
    lines = (exported["jsonl"] / f"{table}.jsonl").read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    found = [json.loads(line) for line in lines]
    assert [list(row) for row in found[:1]] == [list(TABLES[table].names)][: len(found)]
    times = [column.name for column in TABLES[table].columns if column.type == "TIMESTAMPTZ"]
    for row in found:
        for name in times:
            assert row[name] is None or row[name].endswith("Z")
            row[name] = row[name] and datetime.fromisoformat(row[name])
    assert found == parquet_rows(snapshot, table)
    doubles = [column.name for column in TABLES[table].columns if column.type == "DOUBLE"]
    assert {type(row[name]) for row in found for name in doubles} <= {float, type(None)}


@pytest.mark.parametrize("table", list(TABLES))
def test_a_csv_file_has_every_value_of_a_table(exported: dict[str, Path], snapshot: Snapshot, table: str) -> None:
    path = exported["csv"] / f"{table}.csv"
    assert path.read_bytes().startswith(",".join(TABLES[table].names).encode() + b"\r\n")
    found = [[_of_cell(column.type, row[column.name]) for column in TABLES[table].columns] for row in csv_rows(path)]
    # A reader that knows no types cannot tell an empty text from none.
    assert found == [
        [None if value == "" else value for value in row.values()] for row in parquet_rows(snapshot, table)
    ]


def _of_cell(kind: str, cell: str) -> Any:
    if cell == "":
        return None
    if kind == "VARCHAR":
        return cell.removeprefix("'")
    if kind == "TIMESTAMPTZ":
        return datetime.fromisoformat(cell)
    return float(cell) if kind == "DOUBLE" else json.loads(cell)


@pytest.mark.parametrize("table", list(TABLES))
def test_an_arrow_file_has_the_table_its_schema_and_its_descriptions(
    exported: dict[str, Path], snapshot: Snapshot, table: str
) -> None:
    with pa.ipc.open_file(exported["arrow"] / f"{table}.arrow") as reader:
        found = reader.read_all()
    assert found.schema.equals(TABLES[table].arrow_schema())
    assert found.to_pylist() == parquet_rows(snapshot, table)
    assert [field.metadata[b"description"].decode() for field in found.schema] == [
        column.description for column in TABLES[table].columns
    ]
    assert found.schema.metadata[b"kernelmart.table"].decode() == table
    assert found.schema.metadata[b"kernelmart.snapshot_id"].decode() == snapshot.snapshot_id


def test_no_cell_of_text_begins_as_a_formula_and_figures_stay_figures(odd_home: Path, tmp_path: Path) -> None:
    printed(odd_home, "export", "runs", "--format", "csv", "--to", str(tmp_path / "csv"))
    rows = of_odd_runs(csv_rows(tmp_path / "csv" / "runs.csv"))
    assert [row["item"] for row in rows] == list(CELLS.values())
    text = (tmp_path / "csv" / "runs.csv").read_bytes().decode("utf-8")
    assert not text.startswith("\ufeff")
    for row in rows:
        assert row["min_ns"] == "-1.5"
        assert (float(row["max_ns"]), float(row["std_ns"])) == (1.0048658277929109e-05, 5e-324)
        assert row["sample_count"] == "9007199254740993"
        assert json.loads(row["flags"]) == ["", 'a"b', "c,d"]
        assert row["observed_at"] == "2025-07-01T00:00:00.123456Z"
    # An empty text is quoted, so that whoever looks can tell it from an absent one.
    assert text.count(',""\r\n') == 1


def test_json_lines_of_odd_values_are_exact(odd_home: Path, tmp_path: Path) -> None:
    printed(odd_home, "export", "runs", "--format", "jsonl", "--to", str(tmp_path / "jsonl"))
    lines = (tmp_path / "jsonl" / "runs.jsonl").read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    rows = of_odd_runs([json.loads(line) for line in lines])
    assert [row["item"] for row in rows] == list(CELLS)
    for row in rows:
        assert (row["min_ns"], row["max_ns"], row["std_ns"]) == (-1.5, 1.0048658277929109e-05, 5e-324)
        assert (row["sample_count"], row["case_index"], row["mode"]) == (2**53 + 1, 0, "leaderboard")
        assert row["flags"] == ["", 'a"b', "c,d"]
        assert row["observed_at"] == "2025-07-01T00:00:00.123456Z"
        assert row["mean_ns"] is None


@pytest.mark.parametrize(
    ("expression", "printed_as"),
    [
        ("timestamptz '2025-06-01 09:11:14.635+00'", "2025-06-01T09:11:14.635Z"),
        ("timestamptz '2025-06-01 09:11:10+02'", "2025-06-01T07:11:10Z"),
        ("timestamptz '0001-01-01 00:00:00.000001+00'", "0001-01-01T00:00:00.000001Z"),
        ("timestamptz '9999-12-31 23:59:59.999999+00'", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_times_are_printed_in_utc_with_the_decimals_that_they_need(expression: str, printed_as: str) -> None:
    from warehouse.database import connect
    from warehouse.statements import statement

    with connect() as connection:
        connection.execute(statement("exports/macros"))
        connection.execute("set timezone = 'Asia/Kathmandu'")
        found = connection.sql(f"select printed_instant({expression})").fetchall()
        assert found == [(printed_as,)]
        assert datetime.fromisoformat(printed_as).tzinfo == UTC


def test_doubles_are_printed_so_that_they_read_back_the_same() -> None:
    from warehouse.database import connect
    from warehouse.statements import statement

    doubles = [0.1, -0.0, 1e-7, 1e21, 5e-324, 1.7976931348623157e308, 4057360.0, 1.0048658277929109e-05]
    with connect() as connection:
        connection.execute(statement("exports/macros"))
        for double in doubles:
            (text,) = connection.execute("select printed_double(?::double)", [double]).fetchall()[0]
            found = json.loads(text)
            assert (found, math.copysign(1, found), type(found)) == (double, math.copysign(1, double), float)
        for nothing in (math.nan, math.inf, -math.inf):
            assert connection.execute("select printed_double(?::double)", [nothing]).fetchall() == [(None,)]


@pytest.mark.parametrize("form", [*FORMS, "kernelindex"])
def test_one_snapshot_gives_the_same_bytes_each_time(
    small_home: SmallHome, exported: dict[str, Path], tmp_path: Path, form: str
) -> None:
    first = exported.get(form, tmp_path / "first")
    if not first.exists():
        printed(small_home.home, "export", "--format", form, "--to", str(first))
    printed(small_home.home, "export", "--format", form, "--to", str(tmp_path / "again"))
    again = tmp_path / "again"
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    for name in names:
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def test_reading_in_small_pieces_gives_the_same_bytes(
    known_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = required(Home(known_home))
    for form in ("csv", "jsonl"):
        write = exports.write_tables(form, ["runs", "measurements", "authors"])
        exports.export(snapshot, tmp_path / f"whole-{form}", form, write)
        with monkeypatch.context() as patched:
            patched.setattr(exports, "BATCH_ROWS", 3)
            patched.setattr(exports, "_LINES", 2)
            exports.export(snapshot, tmp_path / f"pieces-{form}", form, write)
        for path in (tmp_path / f"whole-{form}").iterdir():
            assert path.read_bytes() == (tmp_path / f"pieces-{form}" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("form", FORMS)
def test_every_export_has_the_sources_their_terms_and_a_description(exported: dict[str, Path], form: str) -> None:
    description = json.loads((exported[form] / "export.json").read_text(encoding="utf-8"))
    assert description["format"] == form
    assert list(description["rows"]) == sorted(TABLES)
    assert description["files"] == {
        path.name: {"sha256": sha256(path), "size_bytes": path.stat().st_size}
        for path in exported[form].iterdir()
        if path.name != "export.json"
    }
    attribution = (exported[form] / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "GPU Mode and the KernelBot dataset, https://huggingface.co/datasets/GPUMODE/kernelbot-data" in attribution
    assert "NVIDIA SOL-ExecBench, https://research.nvidia.com/benchmarks/sol-execbench" in attribution
    assert description["rows"]["sources"] == 2


def test_tables_that_are_named_come_alone_but_for_the_sources(known_home: Path, tmp_path: Path) -> None:
    printed(known_home, "export", "ranks", "--format", "jsonl", "--to", str(tmp_path / "one"))
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "ATTRIBUTION.md", "export.json", "ranks.jsonl", "sources.jsonl"
    ]  # fmt: skip


def test_another_snapshot_is_exported_by_the_beginning_of_its_id(known_home: Path, tmp_path: Path) -> None:
    name = required(Home(known_home)).snapshot_id
    printed(
        known_home, "export", "sources", "--format", "csv", "--to", str(tmp_path / "a"), "--snapshot", name[:12]
    )  # fmt: skip
    assert json.loads((tmp_path / "a" / "export.json").read_text())["snapshot_id"] == name
    line = refused(
        known_home, "export", "--format", "csv", "--to", str(tmp_path / "b"), "--snapshot", "1999"
    )  # fmt: skip
    assert "there is no snapshot 1999" in line


@pytest.mark.parametrize("there", ["folder", "empty", "file", "link"])
def test_nothing_that_is_there_is_written_over(known_home: Path, tmp_path: Path, there: str) -> None:
    folder = tmp_path / "there"
    if there == "file":
        folder.write_text("mine")
    elif there == "link":
        folder.symlink_to(tmp_path / "nowhere")
    else:
        folder.mkdir()
        if there == "folder":
            (folder / "mine.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    line = refused(known_home, "export", "--format", "csv", "--to", str(folder))
    assert line == f"{folder}: there is something here already; name a folder that is not there yet"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("below", ["snapshots/mine", "raw/objects/mine", "there/../tables/mine"])
def test_nothing_is_exported_among_the_warehouse_s_own_files(known_home: Path, below: str) -> None:
    folder = known_home / below
    line = refused(known_home, "export", "--format", "csv", "--to", str(folder))
    assert line == f"{folder}: it would lie among the warehouse's own files; name a folder elsewhere"
    assert not folder.exists()


def test_wrong_usage_is_told_from_failure(known_home: Path, tmp_path: Path) -> None:
    to = ("--to", str(tmp_path / "out"))
    assert "there is no table 'nothing'" in refused(known_home, "export", "nothing", "--format", "csv", *to, code=2)
    assert "name no table" in refused(known_home, "export", "runs", "--format", "kernelindex", *to, code=2)
    assert run(known_home, "export", "--format", "csv").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_snapshot_is_not_exported(tmp_path: Path) -> None:
    home = publish(tmp_path / "home")
    path = required(home).parquet("ranks")[0]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    line = refused(home.root, "export", "--format", "csv", "--to", str(tmp_path / "out"))
    assert line.startswith(f"{path}: ")
    assert "nothing was exported" in line
    assert not (tmp_path / "out").exists()


def test_an_export_that_fails_leaves_nothing(known_home: Path, tmp_path: Path) -> None:
    def fail(shown: exports.Shown, folder: Path) -> dict[str, int]:
        exports.write_tables("csv", ["runs"])(shown, folder)
        shown.connection.execute("select error('no more memory\nat all')")
        return {}

    with pytest.raises(exports.ExportError, match=r"out: .*no more memory at all; nothing was exported"):
        exports.export(required(Home(known_home)), tmp_path / "out", "csv", fail)
    assert list(tmp_path.iterdir()) == []


def test_the_catalogue_is_one_of_the_forms(small_home: SmallHome, tmp_path: Path) -> None:
    printed(small_home.home, "export", "--format", "kernelindex", "--to", str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "ATTRIBUTION.md", catalogue.FILE, "export.json"
    ]  # fmt: skip
