"""Parts of SOL-ExecBench's tables: what did not change is not made again, and the tables are as if all were."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from assets.sol_execbench import kernel_parts
from assets.sol_execbench.build import build_tables, check_answers
from assets.sol_execbench.groups import Group
from assets.sol_execbench.normalise import Batch, in_order, normalise
from assets.sol_execbench.read import Answer
from assets.sol_execbench.terms import SOURCE
from tests.sol_answers import FETCHED_AT, answer, corpus, definition, listed, submission
from warehouse.errors import UnreadableError
from warehouse.parts import Part, PartStore
from warehouse.raw import Collection, RawFile, RawStore

VOLATILE = {"fetched_at", "first_seen_at"}
Rows = dict[str, list[str]]


class Answers:
    """Answers in a raw store, and the parts that are made of them."""

    def __init__(self, folder: Path) -> None:
        self.raw = RawStore(folder / "raw")
        self.store = PartStore(folder / "tables")
        self.files: dict[str, RawFile] = {}
        self.now = FETCHED_AT

    def add(self, *answers: Answer) -> None:
        """Add answers, in place of those of the same names."""
        for one in answers:
            self.files[one.locator] = self.raw.keep_bytes(one.load(), one.locator, self.now)

    @property
    def collection(self) -> Collection:
        """All of them."""
        return Collection(SOURCE, tuple(self.files.values()))

    def build(self) -> Part:
        """The tables of all."""
        parts = build_tables(self.store, self.collection)
        assert all(len(files) == 1 for files in parts.values())
        return Part((self.store.root / parts["runs"][0]).parent)

    def groups(self) -> list[list[str]]:
        """Names of the kernels' groups in each part, the largest part first."""
        folder = self.store.root / kernel_parts.STAGE
        found = [sorted(Part(path).facts["groups"]) for path in folder.iterdir()]
        return sorted(found, key=len, reverse=True)

    def anew(self, folder: Path) -> Rows:
        """The rows of all tables, made in another store, where nothing was made before."""
        return rows(Part((folder / build_tables(PartStore(folder), self.collection)["runs"][0]).parent))


def rows(part: Part) -> Rows:
    """All tables' rows in some order, without what says when."""
    return {
        path.stem: sorted(
            json.dumps({name: value for name, value in row.items() if name not in VOLATILE}, default=str)
            for row in pq.read_table(path, partitioning=None).to_pylist()
        )
        for path in part.folder.glob("*.parquet")
    }


def small(count: int) -> list[Answer]:
    numbers = range(1, count + 1)
    return corpus(
        [listed(number, submission_count=1) for number in numbers],
        [definition(number) for number in numbers],
        {str(number): [submission(100 + number, number)] for number in numbers},
    )


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    made = Answers(tmp_path)
    made.add(*small(6))
    return made


def page(number: int, *ids: int, **changes: Any) -> Answer:
    found = [{**submission(one, number), **changes} for one in ids]
    return answer(f"submissions/{number}.json", {"submissions": found, "total": len(found)})


def test_one_changed_kernel_is_made_alone_and_the_tables_are_as_if_all_were(answers: Answers, tmp_path: Path) -> None:
    answers.build()
    (first,) = answers.groups()
    assert len(first) == 6
    answers.add(page(3, 203, 103))
    part = answers.build()
    again, new = answers.groups()
    assert again == first
    assert len(new) == 1
    assert rows(part) == answers.anew(tmp_path / "anew")
    assert part.read("runs").num_rows == 7


def test_a_changed_count_in_the_listing_makes_that_kernel_again(answers: Answers, tmp_path: Path) -> None:
    answers.build()
    entries = [listed(number, submission_count=number // 6) for number in range(1, 7)]
    answers.add(answer("kernels.json", {"kernels": entries}))
    part = answers.build()
    assert [len(groups) for groups in answers.groups()] == [6, 5]
    assert rows(part) == answers.anew(tmp_path / "anew")


def test_what_did_not_change_costs_one_look(answers: Answers) -> None:
    part = answers.build()
    # Nothing could be made again: the originals are gone.
    for file in answers.files.values():
        file.path.unlink()
    assert answers.build() == part
    assert [len(groups) for groups in answers.groups()] == [6]


def test_answers_that_are_gone_take_their_rows_along_and_make_nothing_again(answers: Answers, tmp_path: Path) -> None:
    answers.build()
    del answers.files["kernels/2.json"], answers.files["submissions/2.json"]
    answers.add(answer("kernels.json", {"kernels": [listed(n, submission_count=1) for n in (1, 3, 4, 5, 6)]}))
    part = answers.build()
    assert [len(groups) for groups in answers.groups()] == [6]
    assert sorted(row["problem"] for row in part.read("problems").to_pylist()) == [
        f"00{number}_copy" for number in (1, 3, 4, 5, 6)
    ]
    assert rows(part) == answers.anew(tmp_path / "anew")


def test_kernels_that_come_to_speak_of_each_other_are_made_together(answers: Answers, tmp_path: Path) -> None:
    answers.build()
    # A submission that both pages show, and one that stands on another kernel's page.
    answers.add(page(3, 103, 104), page(5, 105, 106, kernel_id=6))
    part = answers.build()
    assert rows(part) == answers.anew(tmp_path / "anew")
    assert sorted(row["submission_id"] for row in part.read("submissions").to_pylist()) == [
        101,
        102,
        103,
        104,
        105,
        106,
    ]
    # Two that changed alone, and the two pairs.
    assert [len(groups) for groups in answers.groups()] == [6, 2, 2]
    answers.add(page(3, 103), page(5, 105))
    assert rows(answers.build()) == answers.anew(tmp_path / "parted")


def test_a_part_that_is_damaged_is_made_again(answers: Answers, tmp_path: Path) -> None:
    expected = rows(answers.build())
    (folder,) = (answers.store.root / kernel_parts.STAGE).iterdir()
    path = folder / "runs.parquet"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    answers.add(page(3, 103, 203))
    part = answers.build()
    assert rows(part) == answers.anew(tmp_path / "anew")
    assert set(expected["problems"]) == set(rows(part)["problems"])


def test_parts_of_many_nights_become_few(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_parts, "_MOST_PARTS", 4)
    monkeypatch.setattr(kernel_parts, "_LARGEST_PARTS", 2)
    answers.build()
    sizes = []
    for night in range(6):
        answers.add(page(1 + night % 5, 300 + night, 101 + night % 5))
        part = answers.build()
        sizes.append(sum(1 for groups in answers.groups() if groups))
    assert rows(part) == answers.anew(tmp_path / "anew")
    # Four nights add a part each; then those with one kernel in use are made anew together.
    assert sizes == [2, 3, 4, 5, 6, 7]
    assert max(len(groups) for groups in answers.groups()[1:]) > 1


def test_parts_are_bounded(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers.anew(tmp_path / "whole")
    monkeypatch.setattr(kernel_parts, "_MOST_RESULTS", 2)
    assert rows(answers.build()) == expected
    assert [len(groups) for groups in answers.groups()] == [2, 2, 2]


def test_every_answer_says_when_it_was_fetched(answers: Answers) -> None:
    answers.build()
    answers.now = FETCHED_AT + timedelta(days=1)
    answers.add(page(3, 203))
    times = {row["locator"]: row["fetched_at"] for row in answers.build().read("source_files").to_pylist()}
    assert times["submissions/3.json"] == answers.now
    assert times["submissions/4.json"] == times["kernels.json"] == FETCHED_AT


def test_an_answer_that_only_an_earlier_reader_could_read_is_one_line(answers: Answers) -> None:
    answers.add(Answer.of("submissions/3.json", b"<html>"))
    last_good = answers.collection
    assert check_answers(answers.collection, last_good) == answers.collection
    with pytest.raises(
        UnreadableError, match=r"^submissions/3\.json: the answer is a web page, not JSON; pull it again$"
    ):
        answers.build()


def test_what_was_read_before_is_only_looked_at(answers: Answers) -> None:
    broken = Answer.of("submissions/3.json", b"<html>")
    good = answers.collection
    answers.add(broken)
    used = check_answers(answers.collection, good)
    assert used.inputs() == good.inputs()
    assert len(used.stale) == 1
    with pytest.raises(UnreadableError, match=r"^submissions/3\.json: the answer is a web page"):
        check_answers(answers.collection, None)


@pytest.mark.parametrize("seed", range(40))
def test_kernels_read_in_groups_are_as_those_read_all_together(seed: int) -> None:
    chance = Random(seed)
    made = _tangled(chance)
    listings, others = in_order(made)
    together = Batch(FETCHED_AT, None)
    known, surprises = together.read_listing(listings)
    surprises.add(together.read(Group(tuple(others), known, bool(known))).surprises)
    expected = {**together.tables.tables(), "drift": surprises.drift(FETCHED_AT)}
    tables = normalise(made, FETCHED_AT, None)
    for name, table in expected.items():
        assert _sorted(tables[name].to_pylist()) == _sorted(table.to_pylist()), name
    assert sum(row["submissions"] for row in tables["authors"].to_pylist()) == sum(
        row["author_key"] is not None for row in tables["submissions"].to_pylist()
    )


def _sorted(found: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in found)


def _tangled(chance: Random) -> list[Answer]:
    """Answers about a few kernels that share names, ids and submissions more than any real ones do."""
    numbers = range(1, chance.choice((3, 5, 8)))
    entries: list[Any] = [
        listed(number, name=chance.choice((f"00{number}_copy", "same")), submission_count=chance.randrange(4))
        for number in numbers
        if chance.random() < 0.8
    ]
    found = [answer("kernels.json", {"kernels": [*entries, *chance.choices([17, listed("x")], k=chance.randrange(2))]})]
    for number in numbers:
        if chance.random() < 0.85:
            said = number if chance.random() < 0.8 else chance.choice(numbers)
            changes = {} if chance.random() < 0.8 else {"name": "same"}
            broken: dict[str, Any] = {"axes": []} if chance.random() < 0.1 else {}
            found.append(answer(f"kernels/{number}.json", {**definition(number, **changes, **broken), "id": said}))
        for number_of_page in range(chance.randrange(3)):
            name = f"submissions/{number}.json" if not number_of_page else f"submissions/{number}.2.json"
            found.append(answer(name, {"submissions": _submissions(chance, number, len(numbers)), "total": 3}))
    return found


def _submissions(chance: Random, number: int, kernels: int) -> list[Any]:
    rows: list[Any] = []
    for _ in range(chance.randrange(4)):
        about = number if chance.random() < 0.8 else chance.randrange(1, kernels + 3)
        changes: dict[str, Any] = {
            "username": chance.choice(("one", "two", None)),
            "gpu_type": chance.choice(("B200", None)),
        }
        if chance.random() < 0.1:
            changes["colour"] = 1
        if chance.random() < 0.1:
            changes["finished_at"] = "soon"
        identifier = chance.choice((chance.randrange(1, 12), 100 * number + chance.randrange(9), "x"))
        rows.append(submission(identifier, about, **changes))
    return rows
