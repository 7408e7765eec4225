"""KernelBot's part of the oracle: the documents of its boards and runs, and the rows they give (see ``oracle``)."""

from __future__ import annotations

import re
from pathlib import Path

from tests.oracle import (
    LARGEST,
    LATENCY,
    LOCAL,
    Hardware,
    Json,
    Rejected,
    bound_shape,
    document,
    document_digest,
    figures,
    implementation,
    in_range,
    input_dtypes,
    instant,
    kebab,
    not_negative,
    positive,
    positive_integer,
    present,
    rounded,
    run_document,
    text_of,
)
from tests.oracle_kernelbot_files import (
    SOURCE,
    Row,
    Sources,
    deadlines,
    find_sources,
    once_aggregate,
    once_per_case,
    valid_rows,
)
from tests.oracle_tables import Corpus, no_figures

CASE_FIGURES = {"mean": positive, "best": positive, "worst": positive, "std": not_negative, "runs": positive_integer}
STATUSES = ("incorrect", "compile_error", "runtime_error", "timeout")
CORRECTNESS = {"comparator": "kernelbot_eval"}

MI300X = Hardware("amd", "AMD Instinct MI300X", "gfx942")
B200 = Hardware("nvidia", "NVIDIA B200", "sm_100")
HARDWARE = {
    "AMD Instinct MI300X": MI300X,
    "MI300": MI300X,
    "AMD Instinct MI325X": Hardware("amd", "AMD Instinct MI325X", "gfx942"),
    "MI355X": Hardware("amd", "AMD Instinct MI355X", "gfx950"),
    "B200": B200,
    "B200_Nebius": B200,
    "NVIDIA": B200,
    "H100": Hardware("nvidia", "NVIDIA H100", "sm_90"),
    "A100": Hardware("nvidia", "NVIDIA A100", "sm_80"),
    "L4": Hardware("nvidia", "NVIDIA L4", "sm_89"),
    "T4": Hardware("nvidia", "NVIDIA T4", "sm_75"),
}


def hardware(label: str) -> Hardware:
    if label in HARDWARE:
        return HARDWARE[label]
    if re.search(r"mi[0-9]", label, re.IGNORECASE):
        return Hardware("amd", label, "unknown")
    if re.match(r"nvidia|rtx|[abhlt][0-9]", label, re.IGNORECASE):
        return Hardware("nvidia", label, "unknown")
    return Hardware("unknown", label, "unknown")


def problem_document(board: str, facts: Json | None) -> Json:
    if facts is None:
        return document("Problem", {"source": SOURCE, "problem": board}, LOCAL)
    parts = ("family", "axes", "inputs", "outputs", "semantics")
    return document("OperationSpec", {part: facts[part] for part in parts})


def spec_entries(spec: Json) -> dict[str, str]:
    """The names and values of a case as upstream writes it: ``name: value; name: value``."""
    if not isinstance(spec, str) or not spec.strip():
        raise Rejected("SPEC_MISSING")
    parts = spec.split(";")
    if not parts[-1].strip():
        parts.pop()
    entries: dict[str, str] = {}
    for part in parts:
        name, colon, value = part.partition(":")
        name = name.strip().lower()
        if not colon or not name:
            raise Rejected("SPEC_FORM", part)
        if name in entries:
            raise Rejected("SPEC_COLLISION", name)
        entries[name] = value.strip()
    return entries


def is_integer_text(text: str) -> bool:
    return re.fullmatch(r"-?(0|[1-9][0-9]*)", text) is not None


def workload_case(facts: Json, spec: Json) -> Json:
    """WorkloadCase of a board with facts, from the text of the case."""
    axes: dict[str, int] = {}
    for name, value in spec_entries(spec).items():
        if not is_integer_text(value):
            raise Rejected("SPEC_VALUE", f"{name}: {value}")
        if len(value) > 17:
            raise Rejected("NUMBER_OUT_OF_RANGE", name)
        axes[name] = in_range(int(value), name)
    tensors = {
        entry["name"]: {
            "dtype": entry["tensor"]["dtype"],
            "shape": bound_shape(entry["tensor"]["shape"], facts["axes"], axes),
        }
        for entry in facts["inputs"]
        if "tensor" in entry
    }
    return document(
        "WorkloadCase",
        {
            "operationSpecDigest": document_digest(problem_document(facts["leaderboard"], facts)),
            "axes": axes,
            "tensors": tensors,
            "correctness": CORRECTNESS,
        },
    )


def plain_case(board: str, spec: Json) -> Json:
    """Case of a board without facts."""
    axes: dict[str, int | str] = {}
    for name, value in spec_entries(spec).items():
        fits = is_integer_text(value) and len(value) <= 17 and abs(int(value)) <= LARGEST
        axes[name] = int(value) if fits else value
    return document("Case", {"problem": board, "axes": axes}, LOCAL)


def workload_suite(board: str, facts: Json | None) -> Json:
    """WorkloadSuite; Suite where there are no facts of a suite."""
    if facts is None or not facts.get("suite"):
        return document("Suite", {"problem": board, "statistic": "unspecified"}, LOCAL)
    return document(
        "WorkloadSuite",
        {
            "operationSpecDigest": document_digest(problem_document(board, facts)),
            "cases": facts["suite"]["cases"],
            "correctness": CORRECTNESS,
            "aggregation": {"metric": "score", "statistic": facts["suite"]["statistic"]},
        },
    )


def protocol(statistic: str | None) -> Json:
    """BenchmarkProtocol of KernelBot: of the per-case boards (None), or of the aggregate ones with a statistic."""
    if statistic is None:
        notes = (
            "Per-case wall-clock statistics as published in the KernelBot dataset. Comparable only within one "
            "leaderboard problem and GPU type; runner software versions ride each run's labels."
        )
    else:
        notes = (
            "Aggregate leaderboard score in seconds over the problem's published benchmark suite, as computed by the "
            "upstream ranked run. Comparable only within one leaderboard problem and runner type."
        )
    return document(
        "BenchmarkProtocol",
        {
            "harness": {
                "name": "reference-kernels eval.py",
                "repository": "https://github.com/gpu-mode/reference-kernels",
            },
            "correctness": {"reference": "problem reference implementation", "comparator": "kernelbot_eval"},
            "measurement": {"timer": "wall_clock", "primaryStatistic": statistic or "mean"},
            "comparability": {"notes": notes, "family": "gpumode_kernelbot"},
        },
    )


def environment(label: str, aggregate: bool) -> Json:
    form_factor = f"runner:{label}" if aggregate else None
    machine = {**vars(hardware(label)), "formFactor": form_factor}
    return document("ExecutionEnvironment", {"hardware": present(machine), "software": {}})


def run_document_per_case(
    digests: dict[str, str], timing: Json, score: Json, benchmark: str, submission_id: int, observed_at: str | None
) -> Json:
    """BenchmarkRun of a case. ``timing``: the figures that count of mean, best, worst, std, runs."""
    std = {
        "metric": "latency",
        "unit": "ns",
        "statistic": "std",
        "value": timing.get("std"),
        "sampleCount": timing.get("runs"),
    }
    measured = {
        "timing": {
            "primaryStatistic": "mean",
            "samples": timing.get("runs"),
            "latencyNs": {
                "mean": rounded(timing["mean"]),
                "minimum": rounded(timing.get("best")),
                "maximum": rounded(timing.get("worst")),
            },
        },
        "measurements": [std] if "std" in timing else None,
    }
    metrics = {"mean_ns": timing["mean"], "best_ns": timing.get("best"), "leaderboard_score_s": score}
    native = {
        "source": SOURCE,
        "benchmark": benchmark,
        "externalId": f"submission/{submission_id}",
        "metrics": metrics,
    }
    return run_document(digests, measured, native, observed_at)


def run_document_aggregate(
    digests: dict[str, str], score: Json, statistic: str, board: str, submission_id: int, observed_at: str | None
) -> Json:
    measured = {"measurements": [{"metric": "score", "unit": "s", "statistic": statistic, "value": score}]}
    native = {
        "source": SOURCE,
        "benchmark": board,
        "externalId": f"submission/{submission_id}",
        "metrics": {"leaderboard_score_s": score},
    }
    return run_document(digests, measured, native, observed_at)


# --- runs -----------------------------------------------------------------------------------------------------


def status_of(values: Json) -> str:
    """The status of a run, of a row of either family."""
    said = str(values.get("status") or "").lower()
    passed = values["run_passed"] if "run_passed" in values else values.get("passed")
    if said == "hacked":
        return "revoked"
    if passed is True:
        return "passed"
    if (values.get("run_compilation") or {}).get("success") is False:
        return "compile_error"
    if said in STATUSES:
        return said
    if (values.get("run_result") or {}).get("check") == "fail":
        return "incorrect"
    if (values.get("run_meta") or {}).get("success") is False:
        return "runtime_error"
    return "failed" if passed is False or said == "failed" else "unknown"


def benchmarks(result: Json) -> dict[int, Json]:
    """The cases of a run by their index, from the flat fields ``benchmark.<index>.<figure>``."""
    cases: dict[int, Json] = {}
    for name, value in (result or {}).items():
        match = re.fullmatch(r"benchmark\.([0-9]+)\.(\w+)", name)
        if match and value is not None:
            cases.setdefault(int(match[1]), {})[match[2]] = value
    return dict(sorted(cases.items()))


def protocol_names(statistic: str | None) -> Json:
    if statistic is None:
        return {"name": "gpumode-kernelbot-eval", "title": "GPU MODE KernelBot evaluation harness"}
    name = f"gpumode-kernelbot-leaderboard-{statistic}"
    return {"name": name, "title": "GPU MODE KernelBot ranked leaderboard run"}


def environment_names(label: str, aggregate: bool) -> Json:
    product = hardware(label).product
    suffix = f" ({label})" if aggregate and label != product else ""
    return {"name": f"gpumode-kernelbot-{kebab(label)}", "title": f"KernelBot runner · {product}{suffix}"}


def run_names(submission_id: int, ending: str, board: str, what: str, labels: Json) -> Json:
    names = {
        "name": kebab(f"kernelbot-{submission_id}-{ending}"),
        "title": f"{board} · submission {submission_id} · {what}",
    }
    return names | ({"labels": labels} if labels else {})


def author_key(owner: Row) -> str | None:
    user = text_of(owner.values.get("user_id"))
    if user is None:
        return None
    return f"{SOURCE}:export/{owner.content_digest[7:19]}/{user}" if owner.run_key else f"{SOURCE}:user/{user}"


class Reader:
    """Makes the rows of the tables out of the rows that stay."""

    def __init__(self, facts: Json, corpus: Corpus, sources: Sources, owners: dict[int, Row]) -> None:
        self.facts = {board["leaderboard"]: board for board in facts["boards"]}
        self.corpus, self.sources, self.owners = corpus, sources, owners
        self.workloads: set[tuple[str, str]] = set()

    def dtypes(self, board: str) -> list[str] | None:
        return input_dtypes(self.facts[board]["inputs"]) if board in self.facts else None

    def implementation(self, owner: Row, board: str, problem_digest: str, label: str) -> Json:
        source = self.sources.find(owner.submission_id)
        described = None
        if source:
            file_name = text_of(owner.values.get("file_name"))
            described = {"contentDigest": source[0], "fileName": file_name, "sizeBytes": source[1]}
        machine, dtypes = hardware(label), self.dtypes(board)
        return implementation(owner.submission_id, problem_digest, "python", machine, dtypes, described)

    def add_run(self, row: Row, statistic: str | None, workload: Json, run_name: str, **columns: Json) -> None:
        """What the runs of both families have in common; ``statistic`` is None for per case."""
        owner, board, aggregate = self.owners[row.submission_id], row.board, statistic is not None
        problem_digest = document_digest(problem_document(board, self.facts.get(board)))
        key, label = f"{SOURCE}:{row.submission_id}", columns["runner"]
        if workload and (board, document_digest(workload)) not in self.workloads:
            self.workloads.add((board, document_digest(workload)))
            dtypes = self.dtypes(board) or []
            self.corpus.add_case(SOURCE, board, problem_digest, workload, dtypes=dtypes, correctness=CORRECTNESS)
        documents = {"implementation": None, "workload": workload, "protocol": protocol(statistic), "environment": None}
        names = {"run": columns.pop("run_names"), "protocol": protocol_names(statistic)}
        self.corpus.add_protocol(documents["protocol"], names["protocol"])
        identity = None
        if label is not None:
            documents["implementation"] = self.implementation(owner, board, problem_digest, label)
            documents["environment"] = environment(label, aggregate)
            names["environment"] = environment_names(label, aggregate)
            self.corpus.add_implementation(documents["implementation"], key)
            runner = label if aggregate else None
            self.corpus.add_environment(documents["environment"], runner, names["environment"])
            identity = "final" if self.sources.final(row.submission_id) else "provisional"
        self.corpus.add_run(
            documents=documents,
            metadata=names,
            correctness=CORRECTNESS,
            ranked_mode="leaderboard",
            source=SOURCE,
            submission_key=key,
            submission_id=row.submission_id,
            author_key=author_key(owner),
            problem=board,
            problem_digest=problem_digest,
            status=status_of(row.values),
            identity=identity,
            observed_at=instant(row.submitted_at),
            run_id=f"{SOURCE}:submission/{row.submission_id}/{run_name}",
            content_digest=row.content_digest,
            locator=row.locator,
            **columns,
        )

    def per_case(self, row: Row) -> None:
        values, facts = row.values, self.facts.get(row.board)
        cases: dict[int, tuple[Json, Json]] = {}
        for index, case in benchmarks(values.get("run_result")).items():
            try:
                spec = case.get("spec")
                cases[index] = (case, workload_case(facts, spec) if facts else plain_case(row.board, spec))
            except Rejected as reason:
                self.corpus.reject(SOURCE, row.locator, f"{row.number}/benchmark/{index}", reason)
        system = present(values.get("run_system_info") or {})
        score, flags = figures(values, {"run_score": positive})
        common = {
            "mode": text_of(values.get("run_mode")),
            "runner": text_of(system.get("gpu")),
            "labels": {name: system[name] for name in ("torch", "platform") if system.get(name)},
            "system": system,
            "metric": LATENCY,
        }
        for index, (case, workload) in cases.items():
            self.add_case_run(row, index, case, workload, score.get("run_score"), flags, common)
        if not cases:
            self.add_run(
                row,
                None,
                None,
                f"run/{row.run_key}",
                **common,
                **no_figures(),
                primary_value=None,
                below=[],
                make_document=None,
                run_names=None,
                case_index=None,
                native_metrics=present({"leaderboard_score_s": score.get("run_score")}),
                flags=flags,
                external_id=f"submission/{row.submission_id}",
                item=str(row.number),
            )

    def add_case_run(
        self, row: Row, index: int, case: Json, workload: Json, score: Json, flags: list[str], common: Json
    ) -> None:
        timing, timing_flags = figures(case, CASE_FIGURES)
        for name in ("mean", "best", "worst"):
            if name in timing and rounded(timing[name]) is None:
                timing_flags.append(f"NOT_FINITE:{name}")
                del timing[name]
        value, best, submission_id = rounded(timing.get("mean")), timing.get("best"), row.submission_id
        observed_at = instant(row.submitted_at)
        axes = "-".join(f"{name}{bound}" for name, bound in sorted(workload["spec"]["axes"].items()))
        metrics = {"mean_ns": timing.get("mean"), "best_ns": best, "leaderboard_score_s": score}
        self.add_run(
            row,
            None,
            workload,
            f"run/{row.run_key}/benchmark/{index}",
            **common,
            primary_value=value,
            below=["BELOW_FLOOR"] if value is not None and value < 100 else [],
            make_document=lambda digests: run_document_per_case(
                digests, timing, score, f"{row.board}/{index}", submission_id, observed_at
            ),
            run_names=run_names(submission_id, axes, row.board, f"case {index}", common["labels"]),
            case_index=index,
            sample_count=timing.get("runs"),
            mean_ns=timing.get("mean"),
            min_ns=best,
            max_ns=timing.get("worst"),
            std_ns=timing.get("std"),
            native_metrics=present(metrics),
            flags=timing_flags + flags,
            external_id=f"submission/{submission_id}/benchmark/{index}",
            item=str(row.number),
        )

    def aggregate(self, row: Row) -> None:
        label, submission_id = text_of(row.values.get("runner")), row.submission_id
        counted, flags = figures(row.values, {"score": positive})
        score = counted.get("score")
        workload = workload_suite(row.board, self.facts.get(row.board))
        statistic: str = workload["spec"].get("statistic") or workload["spec"]["aggregation"]["statistic"]
        observed_at = instant(row.submitted_at)
        self.add_run(
            row,
            statistic,
            workload,
            "leaderboard" if label is None else f"leaderboard/{label}",
            **no_figures(),
            mode=text_of(row.values.get("mode")),
            runner=label,
            labels={},
            system=present({"runner": label}),
            metric=("score", statistic, "s"),
            primary_value=score,
            below=["BELOW_FLOOR"] if score is not None and score < 1e-7 else [],
            make_document=lambda digests: run_document_aggregate(
                digests, score, statistic, row.board, submission_id, observed_at
            ),
            run_names=run_names(submission_id, "leaderboard", row.board, "leaderboard score", {}),
            case_index=None,
            native_metrics=present({"leaderboard_score_s": score}),
            flags=flags,
            external_id=f"submission/{submission_id}/leaderboard",
            item=str(row.number),
        )

    def submission(self, owner: Row, kept: list[Row]) -> None:
        source = self.sources.find(owner.submission_id)
        scores = [
            counted
            for row in kept
            if "leaderboard" in (row.values.get("run_mode"), row.values.get("mode"))
            and status_of(row.values) == "passed"
            for counted in figures(row.values, {"run_score": positive, "score": positive})[0].values()
        ]
        self.corpus.add_submission(
            SOURCE,
            owner.submission_id,
            problem=owner.board,
            author_key=author_key(owner),
            submitted_at=instant(owner.submitted_at),
            file_name=text_of(owner.values.get("file_name")),
            upstream_status=text_of(owner.values.get("status")),
            score_s=min(scores, default=None),
            source_digest=source and source[0],
            source_bytes=source and source[1],
            code_id=text_of(owner.values.get("code_id")),
        )

    def problem(self, row: Row, deadline: str | None) -> None:
        facts, board = self.facts.get(row.board), row.board
        plain = {"slug": f"kernelmart-{kebab(board)}", "family": "uncategorized", "title": board}
        plain |= {"scoring": "per_case" if row.run_key else "aggregate"}
        shown = facts or plain
        self.corpus.add_problem(
            SOURCE,
            board,
            problem_document(board, facts),
            slug=shown["slug"],
            family=shown["family"],
            title=shown["title"],
            scoring=shown["scoring"],
            ranking_by=shown.get("ranking_by"),
            axes=shown.get("axes", {}),
            inputs=shown.get("inputs", []),
            outputs=shown.get("outputs", []),
            tags=shown.get("tags", []),
            curated=facts is not None,
            upstream_id=text_of(shown.get("upstream_id")) or text_of(row.values.get("leaderboard_id")),
            deadline_at=deadline,
        )


def read(folder: Path, facts: Json, code: bool, corpus: Corpus) -> None:
    """Adds all that the Parquet files of a folder give."""
    per_case, aggregate = valid_rows(folder, facts, code, corpus)
    sources = find_sources(folder, per_case + aggregate, code)
    kept = once_per_case(per_case, corpus) + once_aggregate(aggregate, corpus)
    by_submission: dict[int, list[Row]] = {}
    by_board: dict[str, Row] = {}
    for row in kept:
        by_submission.setdefault(row.submission_id, []).append(row)
        by_board.setdefault(row.board, row)
    # A submission is described by its first row, in the order of the files.
    reader = Reader(facts, corpus, sources, {submission_id: rows[0] for submission_id, rows in by_submission.items()})
    for row in kept:
        if row.run_key:
            reader.per_case(row)
        else:
            reader.aggregate(row)
    for rows in by_submission.values():
        reader.submission(rows[0], rows)
    ends = deadlines(folder)
    for row in by_board.values():
        reader.problem(row, instant(ends.get(row.board)))
