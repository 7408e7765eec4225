"""`kernelmart show`: runs, submissions, problems, and whatever else a digest names."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.commands import as_json, fields, printed, refused, run, table
from tests.small_snapshot import BOARD, HOSTILE, KERNEL, PUBLISHED, PUBLISHED_KEY, PUBLISHED_SOL, run_id
from warehouse.identity import canonical_json

PUBLISHED_RUN = run_id(29858)


def test_a_run_page_says_the_figure_and_the_place_first(known_home: Path) -> None:
    lines = printed(known_home, "show", PUBLISHED_RUN).splitlines()
    assert lines[:3] == [
        "AMD DeepSeek-style MoE layer · case 0 · AMD Instinct MI300X · KernelBot user 302",
        "4.18 ms, mean of 20 (4175913 ns)",
        "rank 2 of 5 runs, 3 authors; 1.02× the best (4.11 ms), median 4.23 ms",
    ]


def test_a_run_page_has_all_that_a_record_page_has(known_home: Path) -> None:
    page = printed(known_home, "show", PUBLISHED_RUN)
    found = fields(page)
    expected = {
        "best_ns": "4057360",
        "mean_ns": "4175913.45",
        "leaderboard_score_s": "0.0073761345439469495",
        "Comparison key": PUBLISHED_KEY,
        "Policy": "ranking-v1",
        "First": run_id(30702),
        "Implementation": "sha256:63840fc0535039bd35cfe7486bfd765d7aa2d63387b740d0ea958d1eea587b98",
        "Identity": "final",
        "Project": "KernelBot user 302 (kernelbot-user-302)",
        "Revision": "submission-29858",
        "Licence declared": "unknown",
        "Workload": "sha256:83ec2927d923cdd5616c8c43cb3970963f0fdec0c720c7a921b72f9ae73a4973",
        "Axes": "bs=1, dexpert=2048, dhidden=7168, nexpertspertoken=4, nroutedexperts=32, nsharedexperts=1, "
        "seed=9371, seqlen=2048",
        "Tensor input": "fp16 [1, 2048, 7168]",
        "Correctness": "passed by the source; policy not published",
        "Protocol": "sha256:7c66da4b5866502eb10444a7ba013d0f6bdf1620c55847945008cad2fbf98aec",
        "Environment": "sha256:f722892449ed976f3e21b12df8b92b34573fc232883fec6a2f3da399a00abdd5",
        "Label torch": "2.8.0.dev20250530+rocm6.3",
        "Run": PUBLISHED_RUN,
        "Run digest": PUBLISHED,
        "External id": "submission/29858/benchmark/0",
        "Evidence": "reported: the source says so, nobody here repeated it",
        "Observed": "2025-06-01T09:11:14.635Z",
        "Imported": "2026-07-01T12:00:00.000Z",
        "Source": "GPU MODE KernelBot (gpumode-kernelbot)",
        "Licence": "Reciprocity",
        "Attribution": "GPU Mode and the KernelBot dataset",
        "All results": f"kernelmart top {BOARD} --home {known_home}",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["Artifacts"].startswith("moe_v4_clean.py, 33852 bytes, text not kept, sha256:")
    assert table(page, "metric") == [
        ["latency", "max", "4287644", "ns", "4.29 ms", "20"],
        ["latency", "mean", "4175913", "ns", "4.18 ms", "20"],
        ["latency", "min", "4057360", "ns", "4.06 ms", "20"],
        ["latency", "std", "59575.79732838796", "ns", "59.6 µs", "20"],
    ]


def test_a_run_of_a_suite_shows_its_cases_and_that_there_are_no_artifacts(known_home: Path) -> None:
    page = printed(known_home, "show", "sol-execbench:submission/6683")
    found = fields(page)
    assert page.splitlines()[1] == "144 µs, mean (143901 ns)"
    assert found["Artifacts"] == "none"
    assert found["Suite"] == "1 case, mean"
    assert found["Suite case 0"] == "batch_seq_len=384"
    assert found["sol_score"] == "0.734476"
    assert found["Harness"] == "SOL-ExecBench evaluation stack v1.0"
    assert found["Run digest"] == PUBLISHED_SOL


def test_a_run_that_is_not_ranked_says_why(known_home: Path) -> None:
    page = printed(known_home, "show", run_id(40000))
    found = fields(page)
    assert page.splitlines()[1:3] == ["no figure", "not ranked"]
    assert found["Not ranked"] == "NOT_PASSED, MODE_TEST, NO_VALUE"
    assert found["Flags"] == "NOT_FINITE:mean"
    assert found["Correctness"] == "not passed (incorrect), says the source; policy not published"
    assert found["Run digest"] == "none: the run has no document"


@pytest.mark.parametrize(
    "name", [PUBLISHED_RUN, PUBLISHED, PUBLISHED.removeprefix("sha256:"), "sha256:039b", "039b", PUBLISHED[7:40]]
)
def test_a_run_goes_by_its_id_its_digest_and_the_digests_first_digits(known_home: Path, name: str) -> None:
    assert as_json(known_home, "show", name)["run_id"] == PUBLISHED_RUN


def test_a_run_goes_by_its_id_upstream(known_home: Path) -> None:
    assert as_json(known_home, "show", "submission/50001/leaderboard")["runner"] == "B200"


def test_json_of_a_run_has_every_figure_to_the_digit(known_home: Path) -> None:
    text = printed(known_home, "show", PUBLISHED_RUN, "--json")
    record = json.loads(text)
    assert record["kind"] == "run"
    assert record["primary_value"] == 4175913
    assert record["native_metrics"]["leaderboard_score_s"] == 0.0073761345439469495
    assert record["axes"]["seed"] == 9371
    assert record["observed_at"] == "2025-06-01T09:11:14.635Z"
    assert [row["statistic"] for row in record["measurements"]] == ["max", "mean", "min", "std"]
    assert '"std_ns": 59575.79732838796,' in text
    small = printed(known_home, "show", "submission/50001/leaderboard", "--json")
    assert '"primary_value": 0.000010048658277929109,' in small


def test_a_submission_shows_all_its_runs_in_every_source_that_has_its_number(known_home: Path) -> None:
    page = printed(known_home, "show", "submission/29858")
    assert "AMD DeepSeek-style MoE layer · submission 29858" in page
    assert "Moe complete layer · submission 29858" in page
    rows = table(page, "case")
    assert [row[:6] for row in rows] == [
        ["0", "AMD Instinct MI300X", "passed", "4.18 ms, mean of 20", "2 of 5", "1.02×"],
        ["1", "AMD Instinct MI300X", "passed", "13.0 ms, mean", "1 of 1", "1.00×"],
    ]
    assert rows[0][-1] == PUBLISHED[7:19]
    found = as_json(known_home, "show", "submission/29858")
    assert [(row["source"], len(row["runs"])) for row in found["submissions"]] == [
        ("gpumode-kernelbot", 2),
        ("sol-execbench", 1),
    ]
    assert as_json(known_home, "show", "sol-execbench:29858")["submissions"] == found["submissions"][1:]


@pytest.mark.parametrize("name", [BOARD, "gpumode-amd-moe", "2b7121e52772"])
def test_a_problem_goes_by_its_name_its_slug_and_its_digest(known_home: Path, name: str) -> None:
    problems = as_json(known_home, "show", name)["problems"]
    assert [problem["problem"] for problem in problems] == [BOARD]
    assert len(problems[0]["cases"]) == 2
    assert [(board["case_indices"], board["runs"], board["best_value"]) for board in problems[0]["boards"]] == [
        ([0], 5, 4109150),
        ([1], 1, 13000000),
    ]
    assert {row["reason"]: row["runs"] for row in problems[0]["ineligible"]} == {
        "NOT_PASSED": 1,
        "MODE_TEST": 1,
        "NO_VALUE": 1,
    }


def test_a_problem_page_shows_facts_cases_and_boards(known_home: Path) -> None:
    page = printed(known_home, "show", BOARD)
    found = fields(page)
    assert page.startswith("AMD DeepSeek-style MoE layer\n")
    assert found["Runs"] == "7, of which 6 ranked"
    assert found["Submissions"] == "6"
    assert found["Axis bs"] == "variable"
    assert found["Input input"] == "fp16 [bs, seqlen, dhidden]"
    assert found["Leaderboards"] == f"kernelmart top {BOARD} --home {known_home}"
    assert "2 cases" in page
    assert table(page, "problem")[0][5:] == ["4.11 ms", "KernelBot user 302", "5", "3", "2025-06-03", "a11fec553fc2"]


@pytest.mark.parametrize(
    ("digest", "kind", "uses"),
    [
        ("63840fc05350", "implementation", {"runs": 2}),
        ("83ec2927d923", "workload", {"boards": 1}),
        ("7c66da4b5866", "protocol", {"boards": 2}),
        ("f722892449ed", "environment", {"boards": 2}),
    ],
)
def test_whatever_else_has_a_digest_is_shown_with_its_uses(
    known_home: Path, digest: str, kind: str, uses: dict[str, int]
) -> None:
    record = as_json(known_home, "show", digest)
    assert record["kind"] == kind
    assert {name: len(record[name]) for name in uses} == uses
    assert printed(known_home, "show", digest).startswith(f"{kind.capitalize()}\n")


def test_a_source_text_is_shown_with_its_submissions(known_home: Path) -> None:
    digest = as_json(known_home, "show", PUBLISHED_RUN)["source_digest"]
    assert as_json(known_home, "show", digest)["submissions"] == ["gpumode-kernelbot:29858"]


def test_a_comparison_key_is_shown_as_its_leaderboard(known_home: Path) -> None:
    assert as_json(known_home, "show", PUBLISHED_KEY)["kind"] == "leaderboard"


def test_the_runs_that_a_name_may_mean_are_listed(known_home: Path) -> None:
    result = run(known_home, "cite", "submission/29858")
    assert result.exit_code == 1
    assert result.stdout == ""
    *candidates, last = result.stderr.splitlines()
    assert [line.split()[:2] for line in candidates] == [
        ["run", run_id(29858, 0)],
        ["run", run_id(29858, 1)],
        ["run", "sol-execbench:submission/29858"],
    ]
    assert last == "Error: submission/29858 has 3 runs; name one of them"


def test_an_unknown_name_gives_close_ones_or_what_there_may_be(known_home: Path) -> None:
    assert refused(known_home, "show", "amd-mixture-of-expert") == (
        f"there is no amd-mixture-of-expert; close to it is {BOARD}"
    )
    assert refused(known_home, "show", "zzz").startswith("there is no zzz; give a run's id, a digest or at least")
    assert refused(known_home, "show", "039").startswith("there is no 039; ")
    assert refused(known_home, "show", "submission/1").startswith("there is no submission/1; ")


def test_the_manifest_has_the_documents_with_their_names(known_home: Path) -> None:
    manifest = json.loads(printed(known_home, "show", PUBLISHED_RUN, "--manifest"))
    assert list(manifest) == ["run", "protocol", "environment"]
    assert digest_of(manifest["run"]) == PUBLISHED
    assert digest_of(manifest["protocol"]) == manifest["run"]["spec"]["protocolDigest"]
    assert digest_of(manifest["environment"]) == manifest["run"]["spec"]["environmentDigest"]
    assert manifest["run"]["metadata"] == {
        "name": "kernelbot-29858-bs1-dexpert2048-dhidden7168-nexpertspertoken4-nroutedexperts32-nsharedexperts1-seed9",
        "title": f"{BOARD} · submission 29858 · case 0",
        "labels": {
            "platform": "Linux-5.15.0-136-generic-x86_64-with-glibc2.35",
            "torch": "2.8.0.dev20250530+rocm6.3",
        },
    }
    assert manifest["protocol"]["metadata"] == {
        "name": "gpumode-kernelbot-eval",
        "title": "GPU MODE KernelBot evaluation harness",
    }
    assert manifest["environment"]["metadata"] == {
        "name": "gpumode-kernelbot-amd-instinct-mi300x",
        "title": "KernelBot runner · AMD Instinct MI300X",
    }


def test_the_manifest_of_an_aggregate_run_names_the_fleet(known_home: Path) -> None:
    manifest = json.loads(printed(known_home, "show", "submission/50002/leaderboard", "--manifest"))
    assert manifest["run"]["metadata"] == {
        "name": "kernelbot-50002-leaderboard",
        "title": "grayscale_v2 · submission 50002 · leaderboard score",
    }
    assert manifest["protocol"]["metadata"]["name"] == "gpumode-kernelbot-leaderboard-unspecified"
    assert manifest["environment"]["metadata"] == {
        "name": "gpumode-kernelbot-b200-nebius",
        "title": "KernelBot runner · NVIDIA B200 (B200_Nebius)",
    }


def test_the_manifest_of_a_sol_run_names_user_kernel_and_gpu(known_home: Path) -> None:
    manifest = json.loads(printed(known_home, "show", "submission/6683", "--manifest"))
    assert digest_of(manifest["run"]) == PUBLISHED_SOL
    assert manifest["run"]["metadata"] == {
        "name": "sol-submission-6683",
        "title": f"solver-0ab8094f · {KERNEL} · B200",
        "labels": {"worker": "B200-ext-prod-2527"},
    }
    assert manifest["protocol"]["metadata"] == {
        "name": "sol-execbench-leaderboard-v1-0",
        "title": "SOL-ExecBench evaluation stack v1.0",
    }
    assert manifest["environment"]["metadata"] == {
        "name": "sol-execbench-b200-v1-0",
        "title": "SOL-ExecBench NVIDIA B200, stack v1.0",
    }


def test_a_run_without_a_document_has_no_manifest(known_home: Path) -> None:
    assert refused(known_home, "show", run_id(40000), "--manifest") == (
        f"{run_id(40000)} has no document (NOT_PASSED, MODE_TEST, NO_VALUE); show it without --manifest"
    )


def test_a_hostile_name_is_cut_and_made_visible(known_home: Path) -> None:
    page = printed(known_home, "show", run_id(20000))
    assert r"\x1b[31mred\x1b[0m \u202e[bold]right\u202c \x9b2J\nnext" in page
    assert len(max(page.splitlines(), key=len)) < 2500
    assert as_json(known_home, "show", run_id(20000))["project_name"] == HOSTILE


def test_a_problem_with_a_hostile_name_goes_by_its_digest_in_what_is_to_be_pasted(known_home: Path) -> None:
    digest = as_json(known_home, "show", "red")["problems"][0]["problem_digest"]
    page = printed(known_home, "show", digest)
    assert page.startswith(r"-rf '\x1b[31m\u202e[red]; drop table runs; --" + "\n")
    assert fields(page)["Leaderboards"] == f"kernelmart top {digest} --home {known_home}"
    assert printed(known_home, "top", digest) == (
        r"no run of -rf '\x1b[31m\u202e[red]; drop table runs; -- is ranked; "
        f"'kernelmart show {digest} --home {known_home}' says why\n"
    )


def test_without_a_snapshot_one_line_says_what_to_do(tmp_path: Path) -> None:
    assert refused(tmp_path, "show", BOARD) == (
        f"{tmp_path}: there is no snapshot yet; run 'kernelmart ingest' with this home first"
    )


@pytest.mark.parametrize("number", range(3))
def test_every_published_record_is_shown_to_the_digit(real_home: Path, number: int) -> None:
    shared = Path(os.environ["KERNELMART_CONFORMANCE"])
    published = json.loads((shared / "golden" / "published_records.json").read_text())[number]
    expected = published["expected"]
    manifest = json.loads(printed(real_home, "show", expected["run_digest"], "--manifest"))
    assert manifest["run"]["metadata"].pop("labels") == published["labels"]
    for kind, document in manifest.items():
        assert set(document.pop("metadata")) == {"name", "title"}
        assert document == published[kind]
    record = as_json(real_home, "show", expected["run_digest"])
    assert {name: record[name] for name in expected} == expected
    assert record["native_metrics"] == published["run"]["spec"]["sourceNative"]["metrics"]
    assert record["labels"] == published["labels"]
    page = printed(real_home, "show", expected["run_digest"])
    assert [digest for digest in expected.values() if digest not in page] == []


def digest_of(document: dict[str, Any]) -> str:
    spoken_for = {name: document[name] for name in ("apiVersion", "kind", "spec")}
    return "sha256:" + hashlib.sha256(canonical_json(spoken_for).encode()).hexdigest()
