"""`kernelmart top`: leaderboards, the boards to choose from, the past, and the fall of the best."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import as_json, printed, refused, table
from tests.small_snapshot import BOARD, KERNEL, PUBLISHED, PUBLISHED_KEY, run_id


def test_a_leaderboard_has_each_authors_best_in_order(known_home: Path) -> None:
    page = printed(known_home, "top", BOARD, "--case", "0")
    assert page.splitlines()[:3] == [
        "amd-mixture-of-experts · case 0 · AMD Instinct MI300X",
        "5 runs, 3 authors; best 4.11 ms, median 4.23 ms; observed 2025-05-01 to 2025-06-03",
        f"each author’s best; board {PUBLISHED_KEY}",
    ]
    places = as_json(known_home, "top", BOARD, "--case", "0")["places"]
    assert [(row["author_rank"], row["rank"], row["run_id"]) for row in places] == [
        (1, 1, run_id(30702)),
        (2, 3, run_id(20000)),
        (2, 3, run_id(30900)),
    ]
    rows = table(page, "author")
    assert page.splitlines()[4].startswith("author rank  author  ")
    assert rows[0][:6] == ["1", "KernelBot user 302", "4.11 ms", "4109150", "1.00×", "–"]
    assert [row[0] for row in rows] == ["1", "2", "2"]


def test_all_shows_every_run_and_marks_equal_ones(known_home: Path) -> None:
    page = printed(known_home, "top", BOARD, "--case", "0", "--all")
    assert [row[0] for row in table(page, "rank")] == ["1", "2", "3=", "3=", "4"]
    places = as_json(known_home, "top", BOARD, "--case", "0", "--all")["places"]
    assert [row["value"] for row in places] == [4109150, 4175913, 4233229, 4233229, 9000000]
    assert places[1]["run_digest"] == PUBLISHED
    assert places[1]["gap_to_best"] == 4175913 / 4109150


def test_limit_cuts_the_board(known_home: Path) -> None:
    assert len(as_json(known_home, "top", BOARD, "--case", "0", "--all", "--limit", "2")["places"]) == 2
    assert "not in the range" in refused(known_home, "top", BOARD, "--limit", "0", code=2)


def test_without_a_case_the_boards_are_listed_with_a_command_that_picks_one(known_home: Path) -> None:
    page = printed(known_home, "top", BOARD)
    assert [row[1:] for row in table(page, "problem")] == [
        ["0", "AMD Instinct MI300X", "AMD Instinct MI300X", "–", "4.11 ms", "KernelBot user 302", "5", "3",
         "2025-06-03", "a11fec553fc2"],
        ["1", "AMD Instinct MI300X", "AMD Instinct MI300X", "–", "13.0 ms", "KernelBot user 302", "1", "1",
         "2025-06-01", as_json(known_home, "top", BOARD)["boards"][1]["comparison_key"][7:19]],
    ]  # fmt: skip
    command = f"kernelmart top {BOARD} --gpu 'AMD Instinct MI300X' --case 0 --home {known_home}"
    assert page.splitlines()[-1] == f"The largest of them: {command}"


@pytest.mark.parametrize(
    ("gpu", "runners"),
    [
        ("B200", ["B200"]),
        ("b200_nebius", ["B200_Nebius"]),
        ("NEBIUS", ["B200_Nebius"]),
        ("h100", ["H100"]),
        ("NVIDIA H100", ["H100"]),
        ("NVIDIA B200", ["B200", "B200_Nebius"]),
        ("nvidia", ["B200", "B200_Nebius", "H100"]),
    ],
)
def test_a_gpu_is_a_label_or_product_before_it_is_a_part_of_one(known_home: Path, gpu: str, runners: list[str]) -> None:
    found = as_json(known_home, "top", "grayscale_v2", "--gpu", gpu)
    boards = found["boards"] if "boards" in found else [found["board"]]
    assert [board["runners"] for board in boards] == [[runner] for runner in runners]


def test_a_case_is_its_number_or_its_workload_digest(known_home: Path) -> None:
    by_digest = as_json(known_home, "top", BOARD, "--case", "83ec2927")
    assert by_digest == as_json(known_home, "top", BOARD, "--gpu", "mi300x", "--case", "0")
    assert by_digest["board"]["comparison_key"] == PUBLISHED_KEY


def test_a_board_goes_by_its_comparison_key(known_home: Path) -> None:
    assert as_json(known_home, "top", "a11fec55")["board"]["comparison_key"] == PUBLISHED_KEY


def test_a_board_that_is_not_there_is_said_to_be_missing(known_home: Path) -> None:
    lists = f"'kernelmart top {BOARD} --home {known_home}' lists the 2 that it has"
    assert refused(known_home, "top", BOARD, "--gpu", "T4") == f"{BOARD} has no board on T4; {lists}"
    assert refused(known_home, "top", BOARD, "--gpu", "MI300X", "--case", "7") == (
        f"{BOARD} has no board on MI300X of case 7; {lists}"
    )


def test_an_unknown_problem_gives_close_names(known_home: Path) -> None:
    assert refused(known_home, "top", "greyscale_v2") == (
        "there is no greyscale_v2; close to it are grayscale_v2, gpumode-grayscale-v2"
    )


def test_the_board_as_of_a_day_has_the_runs_observed_by_its_end(known_home: Path) -> None:
    past = as_json(known_home, "top", BOARD, "--case", "0", "--as-of", "2025-05-31")
    assert [(row["author_rank"], row["run_id"], row["gap_to_best"]) for row in past["places"]] == [
        (1, run_id(20000), 1),
        (2, run_id(10000), 9000000 / 4233229),
    ]
    assert past["as_of"] == "2025-05-31T23:59:59.999999Z"
    assert (past["board"]["runs"], past["board"]["best_value"]) == (2, 4233229)
    day = as_json(known_home, "top", BOARD, "--case", "0", "--as-of", "2025-06-01")
    assert day["places"][0]["run_id"] == run_id(29858)


def test_the_board_as_of_an_instant_has_the_runs_observed_up_to_it(known_home: Path) -> None:
    def runs(instant: str) -> int:
        found: int = as_json(known_home, "top", BOARD, "--case", "0", "--as-of", instant)["board"]["runs"]
        return found

    assert runs("2025-06-01T09:11:14.634") == 2
    assert runs("2025-06-01T09:11:14.635Z") == 3
    assert runs("2025-06-01T11:11:14.635+02:00") == 3


def test_before_the_first_run_there_is_no_board(known_home: Path) -> None:
    assert refused(known_home, "top", BOARD, "--case", "0", "--as-of", "2025-01-01") == (
        f"no run of board {PUBLISHED_KEY} had been observed by 2025-01-01T23:59:59.999999Z; ask for a later day"
    )


def test_a_day_that_is_none_is_wrong_usage(known_home: Path) -> None:
    assert "'soon' is neither a day (2025-06-01) nor an instant" in refused(
        known_home, "top", BOARD, "--as-of", "soon", code=2
    )


def test_history_draws_and_lists_the_fall_of_the_best(known_home: Path) -> None:
    falls = as_json(known_home, "top", BOARD, "--case", "0", "--history")["history"]
    assert [(fall["run_id"], fall["value"]) for fall in falls] == [
        (run_id(10000), 9000000),
        (run_id(20000), 4233229),
        (run_id(29858), 4175913),
        (run_id(30702), 4109150),
    ]
    assert [fall["held_for_s"] for fall in falls][:2] == [86400, 2625074.635]
    page = printed(known_home, "top", BOARD, "--case", "0", "--history")
    lines = page.splitlines()
    drawn = [line.partition("┤") for line in lines if "┤" in line]
    assert len(drawn) == 12
    assert (drawn[0][0].strip(), drawn[-1][0].strip()) == ("9.00 ms", "4.11 ms")
    assert drawn[0][2].startswith("●─┐")
    assert sum(line[2].count("●") for line in drawn) == 4
    assert [row[1:3] for row in table(page, "observed")] == [
        ["9.00 ms", "–"],
        ["4.23 ms", "2.13×"],
        ["4.18 ms", "1.01×"],
        ["4.11 ms", "1.02×"],
    ]
    assert "stands" in page


def test_history_as_of_a_day_ends_there(known_home: Path) -> None:
    found = as_json(known_home, "top", BOARD, "--case", "0", "--history", "--as-of", "2025-05-31")
    assert [fall["value"] for fall in found["history"]] == [9000000, 4233229]


def test_a_problem_with_one_board_needs_no_choice(known_home: Path) -> None:
    assert [row["value"] for row in as_json(known_home, "top", KERNEL)["places"]] == [143901, 200000]


def test_the_real_leaderboard_is_the_one_expected(real_home: Path) -> None:
    found = as_json(real_home, "top", BOARD, "--gpu", "MI300X", "--case", "0", "--limit", "1000")
    assert (found["board"]["comparison_key"], found["board"]["runs"]) == (PUBLISHED_KEY, 118)
    assert len(found["places"]) == found["board"]["authors"] == 46
    all_of_it = ("top", BOARD, "--case", "0", "--all", "--limit", "1000")
    every_run = as_json(real_home, *all_of_it)["places"]
    assert len(every_run) == 118
    assert as_json(real_home, *all_of_it, "--as-of", "2030-01-01")["places"] == every_run
