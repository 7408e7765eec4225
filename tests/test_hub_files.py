"""Which of the Hub's files hold data, and which bytes of them are needed, however hostile card and footer are."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from assets.kernelbot.hub_files import HubFile, card_patterns, chunks, data_files, joined, leaves, spans
from assets.kernelbot.read import is_bulk
from tests.kernelbot_folder import score_row, write
from warehouse.errors import UnreadableError


def card(header: str) -> str:
    return f"---\n{header}\n---\n\n# A title\n\n---\n"


@pytest.mark.parametrize(
    ("header", "patterns"),
    [
        ("configs:\n- config_name: a\n  data_files: a.parquet", ["a.parquet"]),
        ("configs:\n- data_files: [a, ./b/*]", ["a", "b/*"]),
        ("configs:\n- data_files:\n  - split: train\n    path: [a, b]\n  - split: test\n    path: c", ["a", "b", "c"]),
        ("configs:\n- data_files: {train: a, test: [b]}", ["a", "b"]),
        ("configs:\n- data_files: 7\n- 8\n- {}\n- data_files: a", ["a"]),
        ("configs: a", []),
        ("- 1", []),
        ("7", []),
        ("configs: [", []),
        ("a: !!python/object/apply:os.system [echo]", []),
        ("a: 2024-99-99", []),
        ("[" * 20_000, []),
        ("configs:\n- data_files: " + "[" * 50 + "a" + "]" * 50, ["a"]),
        ("a: &a {x: 1}\nb: &b {<<: [*a, *a]}\nconfigs:\n- data_files: a", []),
        (f"configs:\n- data_files: [{'x' * 300}, a]", ["a"]),
    ],
)
def test_the_files_that_a_card_names_are_known_in_every_form(header: str, patterns: list[str]) -> None:
    assert card_patterns(card(header)) == patterns


@pytest.mark.parametrize("text", ["", "# no header", "---\n", "---\nconfigs:\n- data_files: a\n", "\x00" * 100])
def test_a_card_without_a_header_names_nothing(text: str) -> None:
    assert card_patterns(text) == []


def test_aliases_do_not_multiply_what_a_card_names() -> None:
    lines = ["a: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    header = "\n".join([*lines, "configs:", "- data_files: *a11"])
    assert len(card_patterns(card(header))) <= 1000


def test_data_is_what_the_card_names_and_every_parquet_file() -> None:
    names = ["z.parquet", "B.PARQUET", "deep/er/a.parquet", "README.md", "x.csv", "plain", ".gitattributes", "parquet"]
    listing = [HubFile(name, 1, None, "0" * 40) for name in names]
    without = [file.path for file in data_files(listing, None)]
    assert without == ["B.PARQUET", "deep/er/a.parquet", "z.parquet"]
    named = data_files(listing, card("configs:\n- data_files: [p*, x.csv, '*.md', z.parquet]"))
    assert [file.path for file in named] == ["B.PARQUET", "deep/er/a.parquet", "parquet", "plain", "z.parquet"]


def test_chunks_are_where_the_footer_says_and_never_outside_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a", [score_row(i, code="x" * i) for i in range(50)])
    pq.write_table(pq.read_table(path), path, row_group_size=20)
    metadata = pq.read_metadata(path)
    found = chunks(metadata, path.stat().st_size)
    assert {len(places) for places in found.values()} == {3}
    (whole,) = joined(span for places in found.values() for span in places)
    assert whole == (4, path.stat().st_size - metadata.serialized_size - 8)
    with pytest.raises(UnreadableError, match="its footer names bytes that it has not"):
        chunks(metadata, whole[1] - 1)


def test_leaves_are_columns_and_what_is_below_them() -> None:
    paths = ["a", "b.x", "b.y.element", "bb", "b.benchmark.0.mean", "b.benchmark.0.mean_of", "code"]
    assert leaves(paths, ["b.y", "a"]) == ["a", "b.y.element"]
    assert leaves(paths, ["b"]) == ["b.x", "b.y.element", "b.benchmark.0.mean", "b.benchmark.0.mean_of"]
    assert leaves(paths, ["b.benchmark.0.mean"]) == ["b.benchmark.0.mean"]


def test_source_text_and_what_was_printed_are_bulk() -> None:
    bulk = ["code", "CODE", "run_meta.stdout", "run_meta.stderr", "run_meta.command", "run_compilation.stdout"]
    assert [path for path in [*bulk, "code_id", "run_meta.success", "run_result.check"] if is_bulk(path)] == bulk


def test_adjacent_chunks_are_fetched_together_and_small_gaps_with_them() -> None:
    found = {
        "a": [(0, 100)],
        "gap": [(100, 105)],
        "b": [(105, 200)],
        "wide": [(200, 260)],
        "c": [(260, 300), (300, 400)],
    }
    wanted = [*found["c"], *found["a"], *found["b"], (400, 400)]
    assert spans(found, wanted, 0) == [(0, 100), (105, 200), (260, 400)]
    assert spans(found, wanted, 5) == [(0, 200), (260, 400)]
    assert spans(found, wanted, 64) == [(0, 200), (260, 400)]
    assert spans(found, wanted, 65) == [(0, 400)]
    assert spans(found, wanted, -1) == [(0, 100), (105, 200), (260, 400)]
    assert spans({**found, "code": [(100, 105)]}, wanted, 1000) == [(0, 100), (105, 400)]
    assert spans(found, [(0, 50), (20, 60)], 0) == [(0, 60)]
    assert spans(found, [], 10) == []


def test_a_card_that_names_one_list_a_billion_times_is_looked_at_so_far() -> None:
    lists = ("x.parquet", "*a", "*b")
    lines = [f"{name}: &{name} [{', '.join([entry] * 999)}]" for name, entry in zip("abc", lists, strict=True)]
    assert card_patterns(card("\n".join([*lines, "configs: [{data_files: *c}]"]))) == ["x.parquet"] * 1000
    empty = [
        f"{name}: &{name} [{', '.join([entry] * 999)}]" for name, entry in zip("abc", ("[]", *lists[1:]), strict=True)
    ]
    assert card_patterns(card("\n".join([*empty, "configs: [{data_files: *c}]"]))) == []
