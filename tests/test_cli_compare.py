"""`kernelmart compare` and `kernelmart cite`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipelines.citation import bibtex, citation
from pipelines.cli import main
from tests.commands import as_json, printed, refused, table
from tests.small_snapshot import PUBLISHED, PUBLISHED_KEY, PUBLISHED_SOL, run_id


def test_a_run_is_compared_with_the_first_of_its_board(known_home: Path) -> None:
    page = printed(known_home, "compare", "039bd61d")
    assert page.splitlines()[:5] == [
        "AMD DeepSeek-style MoE layer · AMD Instinct MI300X",
        f"board {PUBLISHED_KEY}",
        "B is 1.02× as fast as A; A − B = 66.8 µs; A / B = 1.0162473990971368",
        f"A  {run_id(29858)}",
        f"B  {run_id(30702)}",
    ]
    assert ["latency mean ns", "4175913", "4109150", "1.0162"] in table(page.partition("Figures")[2], "A")
    assert "rank 2 of 5 runs" in page
    assert "rank 1 of 5 runs" in page


def test_two_named_runs_are_compared_in_the_order_given(known_home: Path) -> None:
    page = printed(known_home, "compare", run_id(29858), run_id(10000))
    assert page.splitlines()[2] == f"A is 2.16× as fast as B; A − B = −4.82 ms; A / B = {4175913 / 9000000}"


def test_equal_runs_are_said_to_be_equal(known_home: Path) -> None:
    page = printed(known_home, "compare", run_id(20000), run_id(30900))
    assert page.splitlines()[2] == "equal: 4.23 ms"


def test_the_first_of_a_board_is_compared_with_itself(known_home: Path) -> None:
    page = printed(known_home, "compare", run_id(30702))
    assert page.splitlines()[2] == "this run is the first of its board: it is compared with itself"


@pytest.mark.parametrize(
    ("other", "parts"),
    [
        (run_id(29858, 1), "workload"),
        (PUBLISHED_SOL, "problem, workload, protocol, environment, correctness"),
        ("submission/50001/leaderboard", "problem, workload, protocol, environment, metric"),
    ],
)
def test_across_comparison_keys_it_refuses_and_says_what_differs(known_home: Path, other: str, parts: str) -> None:
    other_id = as_json(known_home, "show", other)["run_id"]
    assert refused(known_home, "compare", PUBLISHED, other) == (
        f"{run_id(29858)} and {other_id} cannot be compared: they differ in {parts}; name two runs of one board, as "
        f"'kernelmart top a11fec553fc2 --home {known_home}' lists them"
    )


def test_a_run_without_a_comparison_key_compares_with_nothing(known_home: Path) -> None:
    reasons = "(NOT_PASSED, MODE_TEST, NO_VALUE)"
    assert refused(known_home, "compare", run_id(40000)) == (
        f"{run_id(40000)} is in no ranks {reasons}; name the run to compare it with"
    )
    assert refused(known_home, "compare", PUBLISHED, run_id(40000)) == (
        f"{run_id(40000)} has no comparison key {reasons}; it compares with nothing"
    )


def test_a_digest_of_something_else_is_no_run(known_home: Path) -> None:
    assert refused(known_home, "compare", "83ec2927") == (
        "there is no run or submission 83ec2927; give its id, its digest or at least four digits of that"
    )


def test_a_citation_names_run_snapshot_source_and_day(known_home: Path) -> None:
    snapshot = as_json(known_home, "status")["snapshot"]
    before = datetime.now(UTC).date().isoformat()
    lines = printed(known_home, "cite", PUBLISHED).splitlines()
    after = datetime.now(UTC).date().isoformat()
    assert lines[:4] == [
        "KernelBot user 302. AMD DeepSeek-style MoE layer, case 0 on AMD Instinct MI300X: submission-29858. 4.18 ms.",
        f"Run {run_id(29858)}, {PUBLISHED}.",
        f"kernelmart snapshot {snapshot['snapshot_id']}, {snapshot['content_digest']}.",
        "Source: GPU Mode and the KernelBot dataset, https://example.org/kernelbot (Reciprocity).",
    ]
    assert lines[4:] in ([f"Accessed {before}."], [f"Accessed {after}."])


def test_a_citation_links_to_where_the_snapshots_are_published(known_home: Path) -> None:
    snapshot = as_json(known_home, "status")["snapshot"]["snapshot_id"]
    words = ["cite", PUBLISHED, "--home", str(known_home)]
    for option in ([], ["--bibtex"]):
        result = CliRunner().invoke(main, [*words, *option], env={"KERNELMART_PUBLIC_URL": "https://example.org/km/"})
        link = f"https://example.org/km/snapshots/{snapshot}/manifest.json#gpumode-kernelbot%3Asubmission/29858/"
        assert link in result.output


def test_a_bibtex_entry_is_named_after_the_digest_and_escapes_what_tex_reads(known_home: Path) -> None:
    entry = printed(known_home, "cite", PUBLISHED, "--bibtex")
    assert entry.startswith("@misc{kernelmart-039bd61d3cb4,\n  author = {{KernelBot user 302}},\n")
    assert entry.endswith("},\n}\n")
    run = {
        "problem_title": "50% of {A} & B_1 \\ #~^$",
        "problem": "p",
        "case_index": None,
        "gpu": None,
        "revision": "submission-1",
        "project_name": None,
        "primary_value": None,
        "primary_unit": None,
        "run_id": "r",
        "run_digest": None,
        "snapshot_id": "20250101T000000Z-00000000",
        "snapshot_digest": "sha256:0",
        "source_attribution": "a",
        "source_url": "u",
        "source_license": "l",
    }
    text = bibtex(citation(run, datetime(2025, 1, 2, tzinfo=UTC).date(), None))
    assert r"\textbackslash{} \#\textasciitilde{}\textasciicircum{}\$" in text
    assert r"{50\% of \{A\} \& B\_1 " in text
    assert "author = {{author not stated}}" in text
    assert "urldate = {2025-01-02}" in text


def test_a_hostile_author_is_cited_without_harm(known_home: Path) -> None:
    assert printed(known_home, "cite", run_id(20000)).startswith(r"\x1b[31mred\x1b[0m \u202e[bold]right")
    assert r"\textbackslash{}x1b[31mred" in printed(known_home, "cite", run_id(20000), "--bibtex")
