"""Saved leaderboards are read whatever their form, and the standings are compared with them place by place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assets import checks
from assets.sol_execbench.build import check_answers
from assets.sol_execbench.leaderboards import Leaderboard, ShownPlace, leaderboard_table, read_leaderboards
from assets.sol_execbench.read import Answer, UnreadableAnswer
from replica.sol_leaderboards import STRANGER
from tests.commands import printed
from tests.conftest import SmallHome
from tests.sol_answers import answer, corpus, counts, definition, drift, listed, made_of
from tests.tables import Row, warehouse
from warehouse.errors import UnreadableError
from warehouse.home import Home
from warehouse.identity import digest
from warehouse.raw import RawStore
from warehouse.snapshots import required

ADDRESS = "leaderboards/9.B200.v1.1.json"


def row(rank: Any, username: Any = "ann", sol_score: Any = 0.75, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "username": username, "sol_score": sol_score, "latency_ms": 1.5, **more}


def told_of(data: Any, locator: str = ADDRESS) -> tuple[list[Leaderboard], list[tuple[str, str, str]]]:
    """What an answer shows, and the drift that reading it tells."""
    told: list[tuple[str, str, str]] = []
    found = read_leaderboards(answer(locator, data), lambda field, kind, detail: told.append((field, kind, detail)))
    return found, told


# Reading


def test_a_leaderboard_has_the_places_of_one_kernel_gpu_and_stack() -> None:
    found, told = told_of({"kernel_id": 9, "rankings": [row(1), row(2, "bob", 0.5), row(2, "cy", 1)]})
    places = [ShownPlace(1, "ann", 0.75), ShownPlace(2, "bob", 0.5), ShownPlace(2, "cy", 1.0)]
    assert found == [Leaderboard(ADDRESS, 9, "B200", "v1.1", places)]
    assert told == []


def test_references_are_no_places_wherever_they_stand() -> None:
    bound = row(None, "SOL Bound", 1.0)
    found, told = told_of({"rankings": [bound, row(1), bound], "reference_entries": [bound, row(1, "Baseline")]})
    assert [board.places for board in found] == [[ShownPlace(1, "ann", 0.75)]]
    assert told == []


@pytest.mark.parametrize(
    "data",
    [
        {"B200": [row(1)], "H100": [row(3)], "reference_entries": [row(None)]},
        {"kernel_id": 9, "rankings": {"B200": [row(1)], "H100": [row(3)]}},
        {"B200": {"rankings": [row(1)], "reference_entries": []}, "H100": {"rankings": [row(3)]}, "sol_entry": {}},
    ],
)
def test_the_older_form_has_the_rankings_of_each_gpu(data: Any) -> None:
    found, told = told_of(data)
    assert [(board.gpu, [place.rank for place in board.places]) for board in found] == [("B200", [1]), ("H100", [3])]
    assert told == []


def test_an_empty_leaderboard_is_one() -> None:
    assert told_of({"rankings": []}) == ([Leaderboard(ADDRESS, 9, "B200", "v1.1", [])], [])


@pytest.mark.parametrize("data", [None, [], "x", {}, {"rankings": None}, {"rankings": {}}, {"rankings": "x"}])
def test_an_answer_without_rankings_is_told(data: Any) -> None:
    assert told_of(data) == ([], [("rankings", "missing", "a leaderboard answer has no rankings")])


@pytest.mark.parametrize("locator", ["leaderboards/9.json", "leaderboards/9.B200.json", "leaderboards/x.B200.v1.json"])
def test_an_address_that_does_not_say_whose_leaderboard_it_is_is_told(locator: str) -> None:
    found, told = told_of({"rankings": [row(1)]}, locator)
    assert found == []
    assert [entry[:2] for entry in told] == [("locator", "unknown_value")]


@pytest.mark.parametrize(
    ("bad", "places", "drift_told"),
    [
        (5, [], ("rankings", "retyped")),
        (row("first"), [], ("rankings", "unknown_value")),
        (row(True), [], ("rankings", "unknown_value")),
        (row(1.5), [], ("rankings", "unknown_value")),
        (row(1, "half \ud800"), [], ("rankings", "unknown_value")),
        (row("3"), [ShownPlace(3, "ann", 0.75)], ("rankings.rank", "retyped")),
        (row(3, 7), [ShownPlace(3, None, 0.75)], ("rankings.username", "retyped")),
        (row(3, sol_score="0.75"), [ShownPlace(3, "ann", None)], ("rankings.sol_score", "retyped")),
        (row(3, sol_score=True), [ShownPlace(3, "ann", None)], ("rankings.sol_score", "retyped")),
    ],
)
def test_an_odd_row_is_told_and_costs_no_other(bad: Any, places: list[ShownPlace], drift_told: tuple[str, str]) -> None:
    found, told = told_of({"rankings": [bad, row(2, "bob")]})
    assert found[0].places == [*places, ShownPlace(2, "bob", 0.75)]
    assert [entry[:2] for entry in told] == [drift_told]


def test_what_is_not_stated_is_absent() -> None:
    found, told = told_of({"rankings": [{"rank": 1}, row(2, ""), row(3, "ann", float("nan"))]})
    assert found[0].places == [ShownPlace(1, None, None), ShownPlace(2, None, 0.75), ShownPlace(3, "ann", None)]
    assert told == []


@pytest.mark.parametrize(
    ("text", "boards", "drift_told"),
    [
        ('{"data": {"rankings": [{"rank": 1, "rank": 2}, {"rank": 3}]}}', 1, ("rankings", "conflict")),
        ('{"data": {"rankings": [], "rankings": []}}', 0, ("data", "conflict")),
        ('{"data": 1, "data": {"rankings": []}}', 0, ("data", "conflict")),
        ('{"error": "rate limited"}', 0, ("rankings", "missing")),
        ("[]", 0, ("rankings", "missing")),
    ],
)
def test_an_answer_that_contradicts_itself_or_is_an_error_is_told(
    text: str, boards: int, drift_told: tuple[str, str]
) -> None:
    told: list[tuple[str, str]] = []
    found = read_leaderboards(Answer.of(ADDRESS, text.encode()), lambda field, kind, _: told.append((field, kind)))
    assert len(found) == boards
    assert told == [drift_told]


def test_what_is_not_json_is_unreadable() -> None:
    with pytest.raises(UnreadableAnswer, match=r"leaderboards/9\.B200\.v1\.1\.json: the answer is a web page"):
        read_leaderboards(Answer.of(ADDRESS, b"<html>"))


def test_a_leaderboard_that_is_not_json_gives_way_to_its_last_good_content(tmp_path: Path) -> None:
    store = RawStore(tmp_path / "raw")
    saved = tmp_path / "saved"
    (saved / "leaderboards").mkdir(parents=True)
    (saved / "kernels.json").write_text('{"data": {"kernels": []}}')
    patterns = ("kernels.json", "leaderboards/*.json")
    (saved / ADDRESS).write_text('{"data": {"rankings": []}}')
    good = check_answers(store.collect_folder("sol-execbench", saved, patterns), None)
    assert good.stale == ()
    (saved / ADDRESS).write_text("<html>")
    bad = store.collect_folder("sol-execbench", saved, patterns)
    used = check_answers(bad, good)
    assert used.files[1] == good.files[1]
    assert used.stale[0].startswith(f"{ADDRESS}: the answer is a web page, not JSON; pull it again; its content of ")
    with pytest.raises(UnreadableError, match="the answer is a web page"):
        check_answers(bad, None)


def test_a_malformed_leaderboard_is_drift_and_makes_no_rows() -> None:
    answers = [
        *corpus([listed(9)], [definition(9)]),
        answer(ADDRESS, {"rankings": [row(1, 5)]}),
        answer("leaderboards/9.H100.v1.1.json", {"pages": [row(1)]}),
    ]
    tables = made_of(answers)
    assert drift(tables) == [
        (ADDRESS, "rankings.username", "retyped", "a number where a text was"),
        ("leaderboards/9.H100.v1.1.json", "rankings", "missing", "a leaderboard answer has no rankings"),
    ]
    assert counts(tables)[ADDRESS] == (0, 0, 0, 0)


# Comparing


def standing(username: str, position: int, sol_score: float, **columns: Any) -> Row:
    return {
        "source": "sol-execbench",
        "problem": "009_copy",
        "runner": "B200",
        "stack_version": "v1.1",
        "author_key": f"sol-execbench:user/{username}",
        "position": position,
        "sol_score": sol_score,
        **columns,
    }


OURS = [standing("ann", 1, 0.75), standing("bob", 2, 0.5), standing("cy", 2, 0.5), standing("dee", 4, 0.25)]
SHOWN = [row(1), row(2, "bob", 0.5), row(2, "cy", 0.5), row(4, "dee", 0.25)]


@pytest.fixture
def raw(tmp_path: Path) -> RawStore:
    return RawStore(tmp_path / "raw")


def differences(raw: RawStore, standings: list[Row], answers: dict[str, Any], kernel: int = 9) -> list[str]:
    """What the check finds in a snapshot with these standings, made from these answers."""
    files = []
    for locator, data in answers.items():
        content = json.dumps({"data": data}).encode()
        raw.path(digest(content)).parent.mkdir(parents=True, exist_ok=True)
        raw.path(digest(content)).write_bytes(content)
        files.append({"locator": locator, "content_digest": digest(content), "source": "sol-execbench"})
    names = {place["author_key"]: place["author_key"].partition("/")[2] for place in standings}
    connection = warehouse(
        {
            "standings": standings,
            "authors": [{"author_key": key, "author_name": name} for key, name in names.items()],
            "problems": [{"source": "sol-execbench", "problem": "009_copy", "upstream_id": str(kernel)}],
            "source_files": files,
        }
    )
    return found_in(connection, raw)


def found_in(connection: duckdb.DuckDBPyConnection, raw: RawStore | None) -> list[str]:
    (check,) = [one for one in checks.all_checks() if one.name == "standings_match_leaderboards"]
    assert not check.blocking
    return checks.run(connection, check, raw)


@pytest.mark.parametrize(
    "data",
    [
        {"rankings": SHOWN},
        {"rankings": [row(None, "SOL Bound", 1.0), *SHOWN], "reference_entries": [row(None, "Scoring Baseline", 0.5)]},
        {"B200": SHOWN},
    ],
)
def test_standings_that_are_as_shown_differ_in_nothing(raw: RawStore, data: Any) -> None:
    assert differences(raw, OURS, {ADDRESS: data}) == []


def test_every_difference_of_a_place_is_one_line(raw: RawStore) -> None:
    shown = [row(1, sol_score=0.8), row(2, "bob", 0.5), row(3, "cy", 0.5), row(5, "eve", 0.1), row(6, None)]
    assert differences(raw, OURS, {ADDRESS: {"rankings": shown}}) == [
        f"{ADDRESS}: ann on B200 has place 1 with 0.8 there, place 1 with 0.75 here",
        f"{ADDRESS}: cy on B200 has place 3 with 0.5 there, place 2 with 0.5 here",
        f"{ADDRESS}: dee on B200 has no place there, place 4 with 0.25 here",
        f"{ADDRESS}: eve on B200 has place 5 with 0.1 there, none here",
        f"{ADDRESS}: somebody without a name on B200 has place 6 with 0.75 there, none here",
    ]


def test_a_place_without_a_score_is_compared_by_its_rank(raw: RawStore) -> None:
    shown = [row(1, sol_score=None), row(3, "bob", None), *SHOWN[2:]]
    assert differences(raw, OURS, {ADDRESS: {"rankings": shown}}) == [
        f"{ADDRESS}: bob on B200 has place 3 there, place 2 with 0.5 here"
    ]


def test_kernels_gpus_stacks_and_sources_are_apart(raw: RawStore) -> None:
    elsewhere = [
        standing("zed", 1, 0.9, runner="H100"),
        standing("zed", 1, 0.9, stack_version="v1.0"),
        standing("zed", 1, 0.9, problem="010_other"),
        standing("zed", 1, 0.9, source="gpumode-kernelbot"),
    ]
    answers = {ADDRESS: {"rankings": SHOWN}, "leaderboards/9.H100.v1.1.json": {"rankings": [row(1, "zed", 0.9)]}}
    assert differences(raw, [*OURS, *elsewhere], answers) == []


def test_an_empty_leaderboard_differs_from_standings(raw: RawStore) -> None:
    assert differences(raw, OURS[:1], {ADDRESS: {"rankings": []}}) == [
        f"{ADDRESS}: ann on B200 has no place there, place 1 with 0.75 here"
    ]


def test_places_of_a_kernel_that_nobody_knows_are_differences(raw: RawStore) -> None:
    assert differences(raw, OURS, {ADDRESS: {"rankings": SHOWN[:1]}}, kernel=10) == [
        f"{ADDRESS}: ann on B200 has place 1 with 0.75 there, none here"
    ]


def test_of_many_differences_the_first_are_listed_and_the_rest_is_told_of(raw: RawStore) -> None:
    shown = [row(place, f"user {place:02}") for place in range(1, 26)]
    found = differences(raw, [], {ADDRESS: {"rankings": shown}})
    assert (len(found), found[-1]) == (21, "there are more than these 20")
    assert found[19].startswith(f"{ADDRESS}: user 20 ")
    assert len(differences(raw, [], {ADDRESS: {"rankings": shown[:20]}})) == 20


def test_an_answer_that_is_gone_or_damaged_is_told(raw: RawStore) -> None:
    content = b'{"data": {"rankings": []}}'
    files = [{"locator": ADDRESS, "content_digest": digest(content), "source": "sol-execbench"}]
    connection = warehouse(
        {"standings": [], "authors": [], "problems": [], "source_files": files}
    )  # fmt: skip
    path = raw.path(digest(content))
    assert found_in(connection, raw) == [
        f"{ADDRESS}: {path} cannot be read (No such file or directory); nothing was compared with it"
    ]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"<html>")
    assert found_in(connection, raw) == [f"{ADDRESS}: the answer is a web page, not JSON; pull it again"]
    assert found_in(connection, None) == []


def test_the_relation_has_the_stated_columns() -> None:
    assert leaderboard_table([]).num_rows == 0
    (found,) = leaderboard_table([Leaderboard(ADDRESS, 9, "B200", "v1.1", [ShownPlace(1, "ann", None)])]).to_pylist()
    assert found == {
        "locator": ADDRESS,
        "kernel_id": 9,
        "gpu": "B200",
        "stack_version": "v1.1",
        "places": [{"rank": 1, "username": "ann", "sol_score": None}],
    }


# A home


def test_of_a_corpus_only_the_contradicting_leaderboard_differs(small_home: SmallHome) -> None:
    saved = small_home.corpus.folder / "sol_execbench" / "leaderboards"
    assert sorted(path.name for path in saved.iterdir()) == [f"{number}.B200.v1.1.json" for number in range(1, 6)]
    answers = {number: json.loads((saved / f"{number}.B200.v1.1.json").read_text())["data"] for number in range(1, 5)}
    assert min(len(answers[1]["rankings"]), len(answers[2]["rankings"]), len(answers[3]["B200"])) > 3
    contradicting = answers[4]["rankings"]
    best, last = contradicting[0]["username"], len(contradicting)
    text = (
        "select author_name, position, sol_score from standings join authors using (author_key) where problem = "
        "(select problem from problems where upstream_id = '4' and standings.source = 'sol-execbench') "
        "and stack_version = 'v1.1' order by position"
    )
    home = Home(small_home.home)
    with required(home).open() as connection:
        first, *_, missing = connection.execute(text).fetchall()
        found = found_in(connection, RawStore(home.raw))
    where = "leaderboards/4.B200.v1.1.json: "
    assert first[:2] == (best, 1)
    assert missing[1] == last
    assert found[0] == f"{where}{best} on B200 has place 1 with 0.999 there, place 1 with {first[2]} here"
    assert set(found[1:]) == {
        f"{where}{missing[0]} on B200 has no place there, place {last} with {missing[2]} here",
        f"{where}{STRANGER} on B200 has place {last} with 0.001 there, none here",
    }


def test_the_check_command_lists_every_difference_and_does_not_fail(small_home: SmallHome) -> None:
    lines = printed(small_home.home, "check").splitlines()
    listed_lines = [line for line in lines if " standings_match_leaderboards: " in line]
    assert len(listed_lines) == 3
    assert all(line.startswith("warning standings_match_leaderboards: leaderboards/4.B200.") for line in listed_lines)
