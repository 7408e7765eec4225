"""The generated corpus: the same bytes for one seed, the real files' shape, and every trap with its fate."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from replica.corpus import Corpus, hostile_text, main, write_corpus
from replica.expectations import KERNELBOT, SOL_EXECBENCH
from replica.kernelbot_corpus import AGGREGATE_FILES
from replica.kernelbot_schemas import AGGREGATE, LEADERBOARDS, PER_CASE
from replica.per_case_corpus import BOARD_IDS, CASES

# As much of the facts as the generator looks at; the generator's tests do not need the facts' own room.
BOARDS: list[dict[str, Any]] = [
    {"leaderboard": "nvfp4_gemm", "upstream_id": 597, "runners": ["NVIDIA"]},
    {"leaderboard": "nvfp4_gemv", "upstream_id": 595, "runners": ["NVIDIA"]},
    {"leaderboard": "nvfp4_group_gemm", "upstream_id": 730, "runners": ["NVIDIA", "B200"]},
    {"leaderboard": "trimul", "upstream_id": 496, "runners": ["A100", "B200", "H100", "MI300"]},
    {"leaderboard": "sort_v2", "upstream_id": None, "runners": ["A100", "B200", "H100", "L4"]},
]
SUBSETS = ("successful_submissions", "deduplicated_submissions", "deduplicated_successful_submissions")
REASONS = {
    "BAD_ID", "BAD_TIME", "BAD_TEXT", "NO_BOARD", "NO_PROBLEM", "DUPLICATE_KEYS", "SPEC_MISSING", "SPEC_FORM",
    "SPEC_VALUE", "SPEC_COLLISION", "UNBOUND_AXIS", "BAD_EXPRESSION", "NUMBER_OUT_OF_RANGE", "NAME_COLLISION",
    "BAD_DEFINITION", "NOT_AN_OBJECT",
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return write_corpus(tmp_path_factory.mktemp("corpus"), boards=BOARDS)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return write_corpus(tmp_path_factory.mktemp("plain"), traps=False, boards=BOARDS)


def table(corpus: Corpus, name: str) -> pa.Table:
    return pq.read_table(corpus.folder / "kernelbot" / f"{name}.parquet")


def rows(corpus: Corpus, name: str) -> list[dict[str, Any]]:
    """A file's rows; bytes that are no text as lone surrogates, instants as integers (some are beyond Python's)."""
    columns = {}
    for field, column in zip(*(lambda part: (part.schema, part.columns))(table(corpus, name)), strict=True):
        if pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = column.cast(pa.large_binary()).to_pylist()
            columns[field.name] = [None if text is None else text.decode(errors="surrogateescape") for text in texts]
        elif pa.types.is_timestamp(column.type):
            columns[field.name] = column.cast(pa.int64()).to_pylist()
        else:
            columns[field.name] = column.to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def trapped(corpus: Corpus, name: str) -> dict[str, dict[str, Any]]:
    """The rows of a file that have an expectation, by its note."""
    all_rows = rows(corpus, name)
    expected = corpus.of(f"{name}.parquet")
    return {one.note: all_rows[int(one.item)] for one in expected if "/" not in one.item}


def answer(corpus: Corpus, locator: str) -> Any:
    return json.loads((corpus.folder / "sol_execbench" / locator).read_text("utf-8"))["data"]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def benchmark(row: dict[str, Any], index: int = 0) -> dict[str, str | None]:
    names = ("spec", "mean", "runs", "best", "worst", "std")
    return {name: row["run_result"].get(f"benchmark.{index}.{name}") for name in names}


# Shape


def test_one_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    made = {
        name: write_corpus(tmp_path / name, seed=seed, scale=0.002, code=True, boards=BOARDS)
        for name, seed in (("first", 7), ("again", 7), ("other", 8))
    }
    first, again, other = (everything(made[name].folder) for name in ("first", "again", "other"))
    assert first == again
    assert made["first"].expectations == made["again"].expectations
    assert first["kernelbot/submissions.parquet"] != other["kernelbot/submissions.parquet"]


def test_a_corpus_without_traps_has_the_eleven_files_with_the_documented_schemas(plain: Corpus) -> None:
    names = {path.stem for path in (plain.folder / "kernelbot").iterdir()}
    assert names == {"leaderboards", "submissions", *SUBSETS, *AGGREGATE_FILES}
    assert table(plain, "leaderboards").schema.equals(LEADERBOARDS)
    assert table(plain, "submissions").schema.equals(PER_CASE)
    for name in AGGREGATE_FILES:
        assert table(plain, name).schema.equals(AGGREGATE), name
    assert [one.note for one in plain.expectations] == ["the published record"] + ["a published record"] * 2


def test_every_parquet_file_is_one_snappy_row_group_without_a_page_index(corpus: Corpus) -> None:
    for path in (corpus.folder / "kernelbot").iterdir():
        metadata = pq.ParquetFile(path).metadata
        assert metadata.num_row_groups == 1, path.name
        chunks = [metadata.row_group(0).column(n) for n in range(metadata.num_columns)]
        assert {chunk.compression for chunk in chunks} == {"SNAPPY"}
        assert not any(chunk.has_column_index or chunk.has_offset_index for chunk in chunks)


def test_row_counts_are_the_real_ones_times_the_scale(plain: Corpus) -> None:
    assert table(plain, "leaderboards").num_rows == 39
    assert table(plain, "submissions").num_rows == 1_500
    assert table(plain, "successful_submissions").num_rows == 604  # of 60,357
    nvidia = table(plain, "nvidia_nvfp4_submissions")
    assert (nvidia.num_rows, pc.sum(nvidia["passed"]).as_py()) == (2_313, 1_175)  # of 231,307 and 117,483
    total = sum(table(plain, path.stem).num_rows for path in (plain.folder / "kernelbot").iterdir())
    assert total == pytest.approx(5_320, rel=0.02)


def test_traps_are_as_many_at_every_scale(corpus: Corpus, tmp_path: Path) -> None:
    small = write_corpus(tmp_path, scale=0.001, boards=BOARDS)
    assert [one.note for one in small.expectations if one.source == KERNELBOT] == [
        one.note for one in corpus.expectations if one.source == KERNELBOT
    ]


def test_a_scale_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"below 0\.001"):
        write_corpus(tmp_path, scale=0.0001, boards=BOARDS)


def test_the_older_files_are_true_subsets_with_types_of_their_own(corpus: Corpus, plain: Corpus) -> None:
    whole = table(plain, "submissions")
    by_run = {row["run_id"]: row for row in whole.to_pylist()}
    for name in SUBSETS:
        part = table(plain, name)
        assert 0 < part.num_rows < whole.num_rows
        for row in part.to_pylist():
            original = by_run[row["run_id"]]
            for column in ("submission_id", "leaderboard_id", "run_mode", "run_score", "run_passed", "submission_time"):
                assert row[column] == original[column]
            said = {key: text for key, text in (row["run_result"] or {}).items() if text is not None}
            assert said == {key: text for key, text in (original["run_result"] or {}).items() if text is not None}
    successful = table(corpus, "successful_submissions").schema
    assert successful.field("run_compilation").type == pa.null()
    assert successful.field("code").type == pa.binary()
    assert successful.field("run_mode").type == pa.large_string()
    assert "__index_level_0__" in successful.names
    fields = {field.name for field in table(corpus, "deduplicated_submissions").schema.field("run_result").type}
    assert "benchmark.0.mean" in fields
    assert "benchmark.0.report" not in fields
    assert pa.types.is_dictionary(table(corpus, "deduplicated_successful_submissions").schema.field("run_mode").type)
    odd = table(corpus, "community_submissions").schema
    assert "benchmark.0.p99" in {field.name for field in odd.field("run_result").type}
    assert odd.field("submission_time").type == pa.timestamp("ns", "UTC")
    assert odd.field("code_id").type == pa.null()
    assert "run_id" not in odd.names
    assert table(corpus, "tomorrow_submissions").schema.field("submission_time").type == pa.timestamp("ns")


def test_authors_of_per_case_files_are_numbered_anew_in_each_file(plain: Corpus) -> None:
    whole = {row["run_id"]: row["user_id"] for row in table(plain, "submissions").to_pylist()}
    renumbered: dict[int, set[int]] = {}
    for row in table(plain, "successful_submissions").to_pylist():
        renumbered.setdefault(whole[row["run_id"]], set()).add(row["user_id"])
    assert len(renumbered) > 10
    assert all(len(numbers) == 1 for numbers in renumbered.values())
    assert all(number not in numbers for number, numbers in renumbered.items())


def test_ordinary_rows_have_a_long_tail_of_authors_improving_chains_ties_failures_and_modes(plain: Corpus) -> None:
    whole = table(plain, "submissions")
    assert set(whole["run_mode"].to_pylist()) == {"test", "benchmark", "leaderboard", "profile.0"}
    counts = sorted(Counter(whole["user_id"].to_pylist()).values(), reverse=True)
    assert counts[0] > 10 * statistics.median(counts)
    assert False in whole["run_passed"].to_pylist()
    assert set(whole["leaderboard_id"].to_pylist()) == set(BOARD_IDS.values())
    nvidia = table(plain, "nvidia_nvfp4_submissions").to_pylist()
    assert {row["status"] for row in nvidia} == {"succeeded", "failed", "hacked", "active"}
    scores = [row["score"] for row in nvidia if row["passed"]]
    assert len(set(scores)) < len(scores)
    chains: dict[tuple[str, str, str], list[float]] = {}
    for row in nvidia:
        if row["passed"]:
            chains.setdefault((row["problem_name"], row["runner"], row["user_id"]), []).append(row["score"])
    long = [chain for chain in chains.values() if len(chain) > 10]
    assert long
    assert all(min(chain[-3:]) < chain[0] for chain in long)
    fleets = Counter(row["submission_id"] for row in table(plain, "trimul_submissions").to_pylist())
    assert max(fleets.values()) > 1


def test_an_ordinary_score_is_the_geometric_mean_of_its_cases(plain: Corpus) -> None:
    ranked = [row for row in table(plain, "submissions").to_pylist() if row["run_score"] is not None]
    assert len(ranked) == 604
    for row in ranked:
        count = int(row["run_result"]["benchmark-count"])
        cases = [benchmark(row, index) for index in range(count)]
        means = [float(case["mean"] or "nan") for case in cases]
        assert row["run_score"] == pytest.approx(math.exp(math.fsum(map(math.log, means)) / count) / 1e9, rel=1e-9)
        assert all(float(c["best"] or "nan") <= float(c["mean"] or "nan") <= float(c["worst"] or "nan") for c in cases)


def test_boards_with_facts_name_exactly_their_variable_axes() -> None:
    axes = {
        "amd-fp8-mm": {"m", "n", "k", "seed"},
        "amd-mixture-of-experts": {
            "bs", "seqlen", "dhidden", "dexpert", "nroutedexperts", "nsharedexperts", "nexpertspertoken", "seed",
        },
        "amd-mla-decode": {"batchsize", "dim", "dq", "prefill", "seed"},
    }  # fmt: skip
    for board, names in axes.items():
        assert 3 <= len(CASES[board]) <= 18
        for spec in CASES[board]:
            assert {entry.split(": ")[0] for entry in spec.split("; ")} == names


def test_code_is_filled_only_when_asked_for(tmp_path: Path, plain: Corpus) -> None:
    assert table(plain, "submissions")["code"].null_count == 1_500
    coded = write_corpus(tmp_path, scale=0.002, traps=False, code=True, boards=BOARDS)
    for name, size in (("submissions", 10_000), ("nvidia_nvfp4_submissions", 10_000), ("linalg_submissions", 100_000)):
        sizes = [len(code) for code in table(coded, name)["code"].to_pylist() if code is not None]
        assert statistics.mean(sizes) == pytest.approx(size, rel=0.2), name
    texts = {row["run_id"]: row["code"] for row in table(coded, "submissions").to_pylist()}
    for row in table(coded, "successful_submissions").to_pylist()[1:]:
        assert row["code"] == texts[row["run_id"]].encode()
    for row in table(coded, "deduplicated_submissions").to_pylist():
        assert row["code"] == "\\x" + texts[row["run_id"]].encode().hex()


# What must come out


def test_counts_add_up_to_the_rows_of_every_file(corpus: Corpus) -> None:
    parquet = {path.name for path in (corpus.folder / "kernelbot").iterdir()}
    below = corpus.folder / "sol_execbench"
    answers = {path.relative_to(below).as_posix() for path in below.rglob("*.json")}
    assert corpus.files.keys() == {(KERNELBOT, name) for name in parquet} | {(SOL_EXECBENCH, name) for name in answers}
    for (source, locator), counts in corpus.files.items():
        if source == KERNELBOT:
            assert counts.rows_read == pq.ParquetFile(corpus.folder / "kernelbot" / locator).metadata.num_rows, locator
        elif locator.startswith("kernels/"):
            assert counts.rows_read == 1
        elif locator.startswith("leaderboards/"):
            assert counts.rows_read == 0
        else:
            name = "kernels" if locator == "kernels.json" else "submissions"
            assert counts.rows_read == len(answer(corpus, locator)[name]), locator
        assert counts.rows_kept == counts.rows_read - counts.rows_duplicate - counts.rows_rejected
        assert counts.eligible_runs <= counts.runs


def test_runs_promised_for_the_ordinary_rows_are_their_cases(plain: Corpus) -> None:
    runs = eligible = 0
    for row in table(plain, "submissions").to_pylist():
        cases = int((row["run_result"] or {}).get("benchmark-count") or 0)
        runs += max(1, cases)
        eligible += cases if row["run_passed"] and row["run_mode"] == "leaderboard" else 0
    counts = plain.files[KERNELBOT, "submissions.parquet"]
    assert (counts.runs, counts.eligible_runs) == (runs, eligible)
    nvidia = plain.files[KERNELBOT, "nvidia_nvfp4_submissions.parquet"]
    assert (nvidia.runs, nvidia.eligible_runs) == (2_313, 1_175)


def test_expectations_are_whole_and_every_reason_occurs(corpus: Corpus) -> None:
    seen = Counter((one.source, one.locator, one.item) for one in corpus.expectations)
    assert max(seen.values()) == 1
    kept: list[str] = []
    for one in corpus.expectations:
        assert one.outcome in ("kept", "duplicate", "rejected")
        assert one.note
        assert (one.reason is not None) == (one.outcome == "rejected")
        if one.outcome == "kept" and one.source == KERNELBOT:
            assert one.run_ids
            assert one.eligible is (one.reasons == [])
        kept.extend(one.run_ids or [])
    assert len(kept) == len(set(kept))
    assert {one.reason for one in corpus.expectations} - {None} == REASONS
    reasons = {reason for one in corpus.expectations for reason in one.reasons or []}
    assert reasons == {
        "NOT_PASSED", "REVOKED", "MODE_TEST", "MODE_BENCHMARK", "MODE_PROFILE", "MODE_PRIVATE", "MODE_SECRET",
        "MODE_WARM_UP", "MODE_UNKNOWN", "NO_VALUE", "NO_ENVIRONMENT", "BELOW_FLOOR", "BELOW_SOL_BOUND",
    }  # fmt: skip


def test_the_three_published_records_are_there_to_the_digit(corpus: Corpus) -> None:
    first = table(corpus, "submissions").slice(0, 1).to_pylist()[0]
    assert (first["submission_id"], first["leaderboard_id"], first["file_name"]) == (29858, 430, "moe_v4_clean.py")
    assert first["submission_time"].isoformat() == "2025-06-01T09:11:14.635000"
    assert first["run_score"] == 0.0073761345439469495
    assert benchmark(first) == {
        "spec": "bs: 1; seed: 9371; seqlen: 2048; dexpert: 2048; dhidden: 7168; nroutedexperts: 32; "
        "nsharedexperts: 1; nexpertspertoken: 4",
        "mean": "4175913.45",
        "runs": "20",
        "best": "4057360.0",
        "worst": "4287644.0",
        "std": "59575.79732838796",
    }
    assert first["run_system_info"]["torch"] == "2.8.0.dev20250530+rocm6.3"
    for kernel, submission, latency, score in ((174, 6683, 0.143901, 0.734476), (9, 4273, 0.317881, 0.918888)):
        (expected,) = [
            one for one in corpus.expectations if one.run_ids == [f"{SOL_EXECBENCH}:submission/{submission}"]
        ]
        assert expected.locator.startswith(f"submissions/{kernel}.")
        assert expected.eligible
        found = answer(corpus, expected.locator)["submissions"][int(expected.item.removeprefix("submissions/"))]
        assert (found["id"], found["latency_ms"], found["sol_score"]) == (submission, latency, score)
        bounds = [case["sol_ms"] for case in answer(corpus, f"kernels/{kernel}.json")["workloads"]]
        assert min(bounds) < latency


# Traps of the per-case files


def test_odd_columns_of_per_case_rows_are_there(corpus: Corpus) -> None:
    odd = trapped(corpus, "submissions")
    for what, column in (
        ("null score", "run_score"),
        ("null mode", "run_mode"),
        ("null passed", "run_passed"),
        ("no machine", "run_system_info"),
        ("null author", "user_id"),
        ("null board", "leaderboard_id"),
        ("null submission id", "submission_id"),
        ("null time", "submission_time"),
        ("null file name", "file_name"),
        ("no run id", "run_id"),
    ):
        assert odd[what][column] is None, what
    assert odd["empty file name"]["file_name"] == ""
    assert odd["file name not UTF-8"]["file_name"].encode(errors="surrogateescape") == b"caf\xe9.py"
    assert odd["code as text that is not UTF-8"]["code"].encode(errors="surrogateescape") == b"# caf\xe9\n"
    assert "\r\n" in odd["code as text, CRLF"]["code"]
    assert odd["before 1970"]["submission_time"] < 0
    assert odd["below a millisecond"]["submission_time"] % 1000 == 999
    listed = table(corpus, "leaderboards")["id"].to_pylist()
    assert odd["board that leaderboards.parquet lacks"]["leaderboard_id"] not in listed
    assert odd["unknown GPU label 'Gaudi 3'"]["run_system_info"]["gpu"] == "Gaudi 3"


def test_hostile_text_is_in_file_names_and_user_names_of_all_sources(corpus: Corpus) -> None:
    assert len(hostile_text[-1]) == 100_000
    joined = "".join(hostile_text)
    for piece in ("'", '"', ";", "\x00", "/", "\\", "\u202e", "\x1b[", "<script>", "العربية", "日本語"):
        assert piece in joined
    assert {text[0] for text in hostile_text} >= set("=+-@")
    nvidia = rows(corpus, "nvidia_nvfp4_submissions")
    for names in (
        {row["file_name"] for row in rows(corpus, "submissions")},
        {row["user_name"] for row in nvidia},
        {row["file_name"] for row in nvidia},
        {row["username"] for row in answer(corpus, "submissions/9001.json")["submissions"] if isinstance(row, dict)},
    ):
        assert names >= set(hostile_text)


def test_odd_figures_of_per_case_rows_are_there(corpus: Corpus) -> None:
    odd = trapped(corpus, "submissions")
    for text in ("nan", "inf", "-inf", "1e300", "-5.0", "0", "0.0"):
        assert benchmark(odd[f"mean {text}"])["mean"] == text
    assert benchmark(odd["mean absent"])["mean"] is None
    assert benchmark(odd["std 0"])["std"] == "0"
    assert benchmark(odd["std absent"])["std"] is None
    assert benchmark(odd["runs 1"])["runs"] == "1"
    assert benchmark(odd["runs absent"])["runs"] is None
    absent = benchmark(odd["best and worst absent"])
    assert absent["best"] is None
    assert absent["worst"] is None
    assert absent["mean"] is not None
    assert odd["score 4.6e-25 beside ordinary cases"]["run_score"] == 4.6e-25
    assert math.isnan(odd["score nan"]["run_score"])
    assert odd["score -1.5"]["run_score"] == -1.5


def test_odd_specs_are_there_on_boards_with_and_without_facts(corpus: Corpus) -> None:
    odd = trapped(corpus, "submissions")
    with_facts = {
        note.partition(": ")[2]: benchmark(row, 1)["spec"]
        for note, row in odd.items()
        if note.startswith("spec on a board with facts")
    }
    for what, piece in (
        ("word", "bs: mixed"),
        ("boolean", "bs: True"),
        ("list", "[80, 176, 128]"),
        ("no colon", "bs 1"),
    ):
        assert piece in (with_facts[what] or ""), what
    assert with_facts["empty"] == ""
    assert with_facts["null"] is None
    assert "BS: 2" in (with_facts["names that collide"] or "")
    free = [row for row in odd.values() if row["leaderboard_id"] == 563]
    specs = [benchmark(row)["spec"] for row in free] + [benchmark(row, 1)["spec"] for row in free]
    for spec in ("case: mixed", "flag: True", "m: [80, 176, 128]", "m: ", "path: a:b", "", None):
        assert spec in specs
    cases = [one for one in corpus.of("submissions.parquet") if "/" in one.item]
    kept = {one.item for one in corpus.of("submissions.parquet") if one.outcome == "kept"}
    assert cases
    assert all(one.outcome == "rejected" and one.item.partition("/")[0] in kept for one in cases)


def test_rows_that_are_one_run_are_there_and_exactly_one_of_them_is_kept(corpus: Corpus) -> None:
    fates: dict[tuple[Any, ...], list[str]] = {}
    all_rows = rows(corpus, "submissions")
    for one in corpus.of("submissions.parquet"):
        if "/" not in one.item and one.outcome != "rejected":
            row = all_rows[int(one.item)]
            result = {key: text for key, text in (row["run_result"] or {}).items() if text is not None}
            content = json.dumps([row["run_passed"], repr(row["run_score"]), result], sort_keys=True)
            nameless = (row["run_mode"], content)
            fates.setdefault((row["submission_id"], row["run_id"] or nameless), []).append(one.outcome)
    assert all(outcomes.count("kept") == 1 for outcomes in fates.values())
    assert sorted(len(outcomes) for outcomes in fates.values())[-4:] == [1, 2, 2, 2]
    runs = {(row["submission_id"], row["run_id"]) for row in all_rows}
    older = trapped(corpus, "deduplicated_submissions")["row that no other file has"]
    assert (older["submission_id"], older["run_id"]) not in runs
    again = trapped(corpus, "successful_submissions")["run that submissions has, with another score"]
    assert (again["submission_id"], again["run_id"]) in runs


def test_ids_as_text_and_one_that_is_no_integer_are_there(corpus: Corpus) -> None:
    for name, bad in (("community_submissions", "12x"), ("tomorrow_submissions", "34y")):
        ids = [row["submission_id"] for row in rows(corpus, name)]
        assert bad in ids
        assert sum(text.isdigit() for text in ids) == len(ids) - 1


# Traps of the aggregate files


def test_odd_aggregate_rows_are_there(corpus: Corpus) -> None:
    odd = trapped(corpus, "nvidia_nvfp4_submissions")
    nothing = odd["null score, mode, runner and passed"]
    assert [nothing[name] for name in ("score", "mode", "runner", "passed")] == [None] * 4
    hacked = odd["hacked with a score"]
    assert hacked["status"] == "hacked"
    assert hacked["score"] == 0.5
    assert hacked["passed"]
    assert odd["score 4.6e-25"]["score"] == 4.6e-25
    assert math.isnan(odd["score nan"]["score"])
    assert math.isinf(odd["score inf"]["score"])
    assert odd["score -1.0"]["score"] == -1.0
    assert odd["score 0.0"]["score"] == 0.0
    assert odd["status None of a row that passed"]["status"] is None
    assert odd["status quarantined of a row that passed"]["status"] == "quarantined"
    assert odd["empty user name"]["user_name"] == ""
    assert odd["unknown runner 'MI400']"[:-1]]["runner"] == "MI400"
    assert odd["before 1970"]["submission_time"] < 0
    bad = trapped(corpus, "pmpp_v2_submissions")["user name not UTF-8"]
    assert bad["user_name"].encode(errors="surrogateescape") == b"jos\xe9"
    assert "tomorrow_softmax" in {row["problem_name"] for row in rows(corpus, "tomorrow_submissions")}


def test_one_row_of_each_submission_and_runner_is_kept(corpus: Corpus) -> None:
    all_rows = rows(corpus, "nvidia_nvfp4_submissions")
    groups: dict[tuple[int, str], list[tuple[str, dict[str, Any]]]] = {}
    for one in corpus.of("nvidia_nvfp4_submissions.parquet"):
        row = all_rows[int(one.item)]
        if row["submission_id"] is not None and one.outcome != "rejected":
            groups.setdefault((row["submission_id"], row["runner"]), []).append((one.outcome, row))
    several = [group for group in groups.values() if len(group) > 1]
    assert sorted(map(len, several)) == [2, 2, 4]
    for group in several:
        best = min(
            (row for _, row in group),
            key=lambda row: (row["mode"] != "leaderboard", not row["passed"], row["score"], row["status"]),
        )
        kept = [row for outcome, row in group if outcome == "kept"]
        assert len(kept) == 1
        assert [kept[0][name] for name in ("mode", "passed", "score", "status")] == [
            best[name] for name in ("mode", "passed", "score", "status")
        ]


# Traps of SOL-ExecBench


def test_odd_sol_submissions_are_there(corpus: Corpus) -> None:
    text = (corpus.folder / "sol_execbench/submissions/9001.json").read_text("utf-8")
    assert '"half \\ud800"' in text
    assert "NaN" in text
    assert "Infinity" in text
    pairs: list[list[tuple[str, Any]]] = []
    json.loads(text, object_pairs_hook=pairs.append)
    assert [keys.count("latency_ms") for keys in ([key for key, _ in one] for one in pairs)].count(2) == 1
    submissions = [row for row in json.loads(text)["data"]["submissions"] if isinstance(row, dict)]
    assert {row["status"] for row in submissions} == {"COMPLETED", "FAILED", "QUARANTINED", None}
    assert {row["submission_mode"] for row in submissions} == {"release", "private", None}
    assert {row["evaluation_stack_version"] for row in submissions} == {"v1.0", "v1.1", None}
    assert {row["is_correct"] for row in submissions} == {True, False, None}
    assert any(row["is_disqualified"] for row in submissions)
    latencies = [row["latency_ms"] for row in submissions]
    assert {None, 0, -1.5} <= set(latencies)
    assert {"NVIDIA_X900_Ultra", None} <= {row["gpu_type"] for row in submissions}
    assert None in {row["username"] for row in submissions}
    assert any("review_notes" in row for row in submissions)
    assert {"900" not in str(row["id"]) for row in submissions if row["id"] in ("12x", "9000900")} == {True, False}


def test_pages_overlap_and_the_total_is_larger_than_what_they_give(corpus: Corpus) -> None:
    first, second = (answer(corpus, f"submissions/9002{n}.json") for n in ("", ".2"))
    shared = {row["id"] for row in first["submissions"]} & {row["id"] for row in second["submissions"]}
    assert len(shared) == 1
    assert first["total"] == second["total"] > len(first["submissions"]) + len(second["submissions"])
    assert min(case["sol_ms"] for case in answer(corpus, "kernels/9002.json")["workloads"]) > 0.9
    assert first["submissions"][0]["latency_ms"] == 0.9


def test_odd_sol_kernels_are_there(corpus: Corpus) -> None:
    assert answer(corpus, "kernels/9001.json")["sol_is_dummy"]
    repeated = Counter(json.dumps(case["axes"]) for case in answer(corpus, "kernels/9003.json")["workloads"])
    assert max(repeated.values()) == 2
    described = answer(corpus, "kernels/9004.json")["workloads"]
    assert described[0]["uuid"]
    assert described[0]["tolerance"] == {"max_atol": 0.001, "max_rtol": 1e-7}
    assert {one["type"] for one in described[0]["inputs"].values()} == {"random", "safetensors", "scalar"}
    derived = answer(corpus, "kernels/9005.json")
    assert "128" in derived["inputs"]["X-in"]["shape"]
    assert list(derived["axes"]).index("C") < list(derived["axes"]).index("B") < list(derived["axes"]).index("A")
    collide = answer(corpus, "kernels/9011.json")["axes"]
    assert {"M", "m"} <= collide.keys()
    assert 2**53 in [axis.get("value") for axis in answer(corpus, "kernels/9013.json")["axes"].values()]
    listed = {kernel["id"] for kernel in answer(corpus, "kernels.json")["kernels"]}
    defined = {int(path.stem) for path in (corpus.folder / "sol_execbench/kernels").iterdir()}
    assert listed - defined == {9021}
    answered = {int(path.name.split(".")[0]) for path in (corpus.folder / "sol_execbench/submissions").iterdir()}
    assert answered - listed == {9022}


def test_ordinary_sol_pages_are_newest_first_and_at_most_fifty_long(plain: Corpus) -> None:
    for path in sorted((plain.folder / "sol_execbench/submissions").iterdir()):
        page = json.loads(path.read_text("utf-8"))["data"]
        times = [row["submitted_at"] for row in page["submissions"]]
        assert times == sorted(times, reverse=True)
        assert len(times) <= page["limit"] == 50
        assert page["offset"] in (0, 50)


def test_the_command_line_writes_a_corpus_and_says_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path), "--scale", "0.001", "--no-traps", "--seed", "3"])
    said = capsys.readouterr().out.splitlines()
    assert "submissions.parquet: 150 rows, 150 kept, 0 duplicate, 0 rejected" in said[1]
    assert said[-1].endswith("rows")
    assert (tmp_path / "kernelbot/submissions.parquet").exists()
