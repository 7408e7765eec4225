"""Every published table and column, once.

The Arrow schemas, the DuckDB definitions with their comments, the data dictionary and the descriptions of a snapshot
(`datapackage.json`, `croissant.json`) are made from `TABLES`. Adding a column is a minor version of `SCHEMA_VERSION`;
removing, renaming or retyping one is a major version.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = "1.1.0"
RANKING_POLICY = "ranking-v1"

# A published type is named as DuckDB names it; JSON columns are canonical JSON text and therefore VARCHAR.
ARROW_TYPES: dict[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "VARCHAR[]": pa.list_(pa.string()),
    "BLOB": pa.binary(),
}


# What readers look single rows up by, in whatever table it is.
LOOKED_UP = ("run_id", "run_digest", "implementation_digest", "submission_key")


@dataclass(frozen=True)
class Column:
    """One column: its DuckDB type, whether it may be null, whether it is part of the key, what table it refers to."""

    name: str
    type: str
    description: str
    nullable: bool = False
    key: bool = False
    references: str | None = None

    @property
    def target(self) -> str | None:
        """The column that it refers to, in the table that it refers to: the one of its name, else the key."""
        if self.references is None:
            return None
        table = TABLES[self.references]
        return self.name if self.name in table.names else table.key[0]


@dataclass(frozen=True)
class Table:
    """One table: columns in published order, and the columns that its rows are sorted by."""

    name: str
    description: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    # Left out of the snapshot's content digest: they say when something was seen, not what it is.
    volatile: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key columns, in order."""
        return tuple(column.name for column in self.columns if column.key)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in published order."""
        return tuple(column.name for column in self.columns)

    @property
    def looked_up(self) -> tuple[str, ...]:
        """Columns that readers look single values up in."""
        return tuple(name for name in self.names if name in LOOKED_UP)

    def foreign_keys(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """References to other tables: the table, columns here, and columns there.

        Columns that are called as parts of the other table's key are one reference together.
        """
        together: dict[tuple[str, str | None], list[Column]] = {}
        for column in self.columns:
            if column.references:
                alone = None if column.name in TABLES[column.references].key else column.name
                together.setdefault((column.references, alone), []).append(column)
        return [
            (table, tuple(column.name for column in columns), tuple(str(column.target) for column in columns))
            for (table, _), columns in together.items()
        ]

    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema, with nullability and each column's description as field metadata."""
        return pa.schema(
            [
                pa.field(
                    column.name,
                    ARROW_TYPES[column.type],
                    nullable=column.nullable,
                    metadata={"description": column.description},
                )
                for column in self.columns
            ]
        )

    def ddl(self) -> str:
        """DuckDB statements that create the table and comment on it and on every column (no index constraints)."""
        columns = ",\n    ".join(
            f'"{column.name}" {column.type}{"" if column.nullable else " not null"}' for column in self.columns
        )
        comments = [f'comment on table "{self.name}" is {_literal(self.description)};']
        comments += [
            f'comment on column "{self.name}"."{column.name}" is {_literal(column.description)};'
            for column in self.columns
        ]
        return f'create table "{self.name}" (\n    {columns}\n);\n' + "\n".join(comments) + "\n"

    def empty(self) -> pa.Table:
        """A table of no rows."""
        return self.arrow_schema().empty_table()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _column(name: str, type_name: str, mark: str, description: str) -> Column:
    """Read a mark: `P` key, `?` nullable, `>table` reference, in any combination separated by blanks."""
    words = mark.split()
    references = next((word[1:] for word in words if word.startswith(">")), None)
    return Column(name, type_name, description, "?" in words, "P" in words, references)


def _table(
    name: str,
    description: str,
    rows: list[tuple[str, str, str, str]],
    sort: str,
    volatile: str = "",
) -> Table:
    columns = tuple(_column(*row) for row in rows)
    return Table(name, description, columns, tuple(sort.split()), tuple(volatile.split()))


_V, _I, _D, _B, _T, _L = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMPTZ", "VARCHAR[]"

_ORIGIN = [
    ("content_digest", _V, ">source_files", "Digest of the file or answer that the row was read from."),
    ("locator", _V, ">source_files", "That file's name or API path, relative to its source."),
    ("item", _V, "", "Row number (from 0) or JSON path inside it."),
]

_RUN = [
    ("run_id", _V, "P", "Stable id of the run, the same whatever else is in the data."),
    ("source", _V, ">sources", "Leaderboard that reported the run."),
    ("submission_key", _V, ">submissions", "The submission that ran."),
    ("problem", _V, "", "Board or kernel, as its platform names it."),
    ("mode", _V, "?", "Mode of the run as upstream writes it."),
    ("status", _V, "", "passed, revoked, incorrect, compile_error, runtime_error, timeout, failed or unknown."),
    ("runner", _V, "?", "Label of the fleet or GPU as upstream writes it."),
    ("gpu", _V, "?", "GPU product."),
    ("architecture", _V, "?", "GPU architecture."),
    ("case_index", _I, "?", "Position of the case on its board, from 0; null where the figure covers a suite."),
    ("workload_digest", _V, "? >cases", "Digest of the case or suite that was measured."),
    ("problem_digest", _V, "", "Digest of the problem's document."),
    ("implementation_digest", _V, "? >implementations", "Digest of the implementation's document."),
    ("protocol_digest", _V, "? >protocols", "Digest of the measurement protocol's document."),
    ("environment_digest", _V, "? >environments", "Digest of the environment's document."),
    ("run_digest", _V, "?", "Digest of the run's document; null where the run has none."),
    ("identity", _V, "?", "final once the implementation digest can no longer change, else provisional."),
    ("comparison_key", _V, "?", "Cohort inside which the result is comparable; null without a run document."),
    ("primary_metric", _V, "?", "Metric that ranks the run: latency or score."),
    ("primary_statistic", _V, "?", "Statistic of that metric."),
    ("primary_unit", _V, "?", "Unit of that metric: ns or s."),
    ("primary_value", _D, "?", "The figure that ranks the run, lower is better."),
    ("sample_count", _I, "?", "Measurements behind the figure."),
    ("mean_ns", _D, "?", "Mean latency, unrounded, as the source states it."),
    ("min_ns", _D, "?", "Smallest latency, unrounded, as the source states it."),
    ("max_ns", _D, "?", "Largest latency, unrounded, as the source states it."),
    ("std_ns", _D, "?", "Standard deviation of the latency, unrounded, as the source states it."),
    ("native_metrics", _V, "", "JSON: the source's own figures, unrounded."),
    ("labels", _V, "", "JSON: software and worker labels that take no part in identity."),
    ("system", _V, "", "JSON: all that the source says of the machine."),
]

TABLES: dict[str, Table] = {
    table.name: table
    for table in [
        _table(
            "runs",
            "Measured or attempted results: one per case, one per aggregate score, one for a run that shows no case.",
            [
                *_RUN,
                ("eligible", _B, "", "Whether the run is ranked under the snapshot's policy."),
                ("ineligible_reasons", _L, "", "Codes of what keeps the run out of the ranks; empty when eligible."),
                ("flags", _L, "", "Marks of oddities that exclude nothing."),
                ("evidence_level", _V, "", "reported: the source says so, nobody here repeated it."),
                ("external_id", _V, "", "Id under which the result is known upstream."),
                ("observed_at", _T, "?", "When the result was made, as the source states it."),
                *_ORIGIN,
            ],
            "source problem comparison_key primary_value run_id",
        ),
        _table(
            "submissions",
            "Submissions: what somebody handed in for one problem.",
            [
                ("submission_key", _V, "P", "source:submission id."),
                ("source", _V, ">sources", "Leaderboard."),
                ("submission_id", _I, "", "Upstream's id."),
                ("problem", _V, "", "Board or kernel."),
                ("author_key", _V, "? >authors", "Who submitted it; null where the source does not say."),
                ("revision", _V, "", "Revision name of the implementation: submission-<id>."),
                ("submitted_at", _T, "?", "When it was submitted."),
                ("file_name", _V, "?", "Name of the submitted file."),
                ("upstream_status", _V, "?", "Status as upstream writes it."),
                ("score_s", _D, "?", "Best score of its leaderboard runs, in seconds."),
                ("source_digest", _V, "? >artifacts", "Digest of its source text, where known."),
                ("source_bytes", _I, "?", "Size of its source text in bytes, where known."),
                ("code_id", _V, "?", "Upstream's id of the source text."),
                ("license_declared", _V, "", "Licence that the submission declares: unknown."),
                ("license_concluded", _V, "", "Licence concluded from evidence: unknown."),
            ],
            "source problem submission_id submission_key",
        ),
        _table(
            "implementations",
            "Implementation documents: one submission's code on one problem and hardware.",
            [
                ("implementation_digest", _V, "P", "Digest of the document."),
                ("submission_key", _V, ">submissions", "Its submission."),
                ("problem_digest", _V, "", "The problem it implements."),
                ("language", _V, "", "Language of its entry point."),
                ("architectures", _L, "", "GPU architectures it was measured on."),
                ("products", _L, "", "GPU products it was measured on."),
                ("dtypes", _L, "", "Data types of its inputs; empty where not stated."),
                ("document", _V, "", "JSON: the whole document without metadata."),
            ],
            "submission_key implementation_digest",
        ),
        _table(
            "cases",
            "Workloads of a problem: single cases and suites.",
            [
                ("source", _V, "P >sources", "Leaderboard."),
                ("problem", _V, "P", "Board or kernel."),
                ("workload_digest", _V, "P", "Digest of the case or suite."),
                ("occurrence", _I, "P", "0, then 1, 2 … where a kernel lists the case again with another baseline."),
                ("kind", _V, "", "case or suite."),
                ("problem_digest", _V, "", "The problem's digest."),
                ("external_id", _V, "?", "Upstream's id of the case."),
                ("axes", _V, "?", "JSON: the case's axis bindings."),
                ("tensors", _V, "?", "JSON: dtype and shape of each input."),
                ("dtypes", _L, "", "Data types of the inputs, sorted."),
                ("suite_cases", _V, "?", "JSON: the cases of a suite, in order."),
                ("statistic", _V, "?", "How a suite's figure is aggregated."),
                ("correctness", _V, "", "JSON: how correctness is judged."),
                ("correctness_key", _V, "", "Digest of that."),
                ("baseline_latency_ms", _D, "?", "Baseline latency that the source states."),
                ("sol_bound_ms", _D, "?", "Speed-of-light bound that the source states."),
                ("document", _V, "", "JSON: the whole document without metadata."),
            ],
            "source problem workload_digest occurrence",
        ),
        _table(
            "problems",
            "Boards and kernels.",
            [
                ("source", _V, "P >sources", "Leaderboard."),
                ("problem", _V, "P", "Board or kernel, as its platform names it."),
                ("problem_digest", _V, "", "Digest of the problem's document."),
                ("slug", _V, "", "Name for addresses."),
                ("family", _V, "", "Kind of operation; uncategorized where nobody says."),
                ("title", _V, "", "Name for reading."),
                ("scoring", _V, "", "per_case, aggregate or suite."),
                ("ranking_by", _V, "?", "How the platform makes a score of the cases: geom, mean or last."),
                ("axes", _V, "", "JSON: the axes and their roles."),
                ("inputs", _V, "", "JSON: the inputs in order."),
                ("outputs", _V, "", "JSON: the outputs in order."),
                ("tags", _L, "", "Tags."),
                ("curated", _B, "", "Whether facts about the problem are known beyond its name."),
                ("upstream_id", _V, "?", "Upstream's id."),
                ("deadline_at", _T, "?", "When the board closes or closed."),
                ("document", _V, "", "JSON: the whole document without metadata."),
            ],
            "source problem",
        ),
        _table(
            "measurements",
            "Every figure of every run.",
            [
                ("run_id", _V, "P >runs", "The run."),
                ("metric", _V, "P", "What was measured."),
                ("statistic", _V, "P", "Which statistic of it."),
                ("unit", _V, "", "Unit of the value; 1 for a pure number."),
                ("value", _D, "", "The figure."),
                ("sample_count", _I, "?", "Measurements behind it."),
            ],
            "run_id metric statistic",
        ),
        _table(
            "ranks",
            "Eligible runs in their cohort, per ranking policy.",
            [
                ("policy", _V, "P", "Ranking policy."),
                ("run_id", _V, "P >runs", "The run."),
                ("comparison_key", _V, "", "Its cohort."),
                ("rank", _I, "", "Dense rank by primary value; equal values share a rank."),
                ("author_rank", _I, "?", "Dense rank among the authors' bests; null for other runs."),
                ("author_best", _B, "", "Whether it is its author's best in the cohort."),
                ("tied", _B, "", "Whether another run has the same rank."),
                ("gap_to_best", _D, "", "Value divided by the cohort's best."),
                ("percentile", _D, "?", "(rank - 1) / (distinct ranks - 1), 0 is best; null where there is one rank."),
                ("cohort_runs", _I, "", "Eligible runs in the cohort."),
                ("cohort_authors", _I, "", "Authors with an eligible run in the cohort."),
            ],
            "comparison_key rank run_id policy",
        ),
        _table(
            "cohorts",
            "Comparison keys with at least one eligible run.",
            [
                ("comparison_key", _V, "P", "The key."),
                ("source", _V, ">sources", "Leaderboard."),
                ("problems", _L, "", "Boards that share the key, sorted."),
                ("problem_digest", _V, "", "Digest of the problem."),
                ("workload_digest", _V, "", "Digest of the case or suite."),
                ("protocol_digest", _V, ">protocols", "Digest of the protocol."),
                ("environment_digest", _V, ">environments", "Digest of the environment."),
                ("gpu", _V, "", "GPU product."),
                ("runner", _V, "?", "Label of the fleet or GPU; null if several."),
                ("metric", _V, "", "Metric that ranks."),
                ("statistic", _V, "", "Statistic of it."),
                ("unit", _V, "", "Unit of it."),
                ("runs", _I, "", "Eligible runs."),
                ("authors", _I, "", "Authors with an eligible run."),
                ("best_value", _D, "", "Smallest value."),
                ("median_value", _D, "", "Median, linear interpolation."),
                ("p90_value", _D, "", "90th percentile, linear interpolation."),
                ("best_run_id", _V, ">runs", "The run that holds the best value."),
                ("first_observed_at", _T, "?", "Earliest observation."),
                ("last_observed_at", _T, "?", "Latest observation."),
            ],
            "source comparison_key",
        ),
        _table(
            "records",
            "Each fall of a cohort's best value, in order of observation.",
            [
                ("comparison_key", _V, "P", "The cohort."),
                ("run_id", _V, "P >runs", "The run that set the record."),
                ("previous_run_id", _V, "? >runs", "The run that held it before."),
                ("value", _D, "", "The new best value."),
                ("previous_value", _D, "?", "The best value before."),
                ("observed_at", _T, "", "When it was set."),
                ("held_for_s", _D, "?", "Seconds until the next record; null while it stands."),
            ],
            "comparison_key observed_at run_id",
        ),
        _table(
            "standings",
            "Places on a board as its own platform shows them.",
            [
                ("source", _V, "P >sources", "Leaderboard."),
                ("problem", _V, "P", "Board or kernel."),
                ("runner", _V, "P", "Label of the fleet or GPU."),
                ("stack_version", _V, "P", "Evaluation stack; empty for KernelBot."),
                ("author_key", _V, "P >authors", "Whose place it is."),
                ("position", _I, "", "Place; equal results share one and the next is skipped."),
                ("submission_key", _V, ">submissions", "The submission that holds it."),
                ("score_s", _D, "?", "Score in seconds (KernelBot)."),
                ("sol_score", _D, "?", "SOL score (SOL-ExecBench)."),
                ("latency_ms", _D, "?", "Latency in ms (SOL-ExecBench)."),
                ("submissions", _I, "", "The author's submissions that count on this board."),
                ("rule", _V, "", "Rule that makes the place."),
            ],
            "source problem runner stack_version position author_key",
        ),
        _table(
            "authors",
            "Who submitted.",
            [
                (
                    "author_key",
                    _V,
                    "P",
                    "source:user/<id>, or source:export/<file>/<id> where ids are redrawn per export.",
                ),
                ("source", _V, ">sources", "Leaderboard."),
                ("author_id", _V, "", "Upstream's id or user name."),
                ("author_name", _V, "?", "Name, where the source gives one."),
                ("project_slug", _V, "", "Slug of the author's project page."),
                ("project_name", _V, "", "Title of the author's project page."),
                ("stable", _B, "", "false where the id holds inside one export only."),
                ("submissions", _I, "", "Submissions of the author in this snapshot."),
            ],
            "source author_key",
        ),
        _table(
            "protocols",
            "How results are measured.",
            [
                ("protocol_digest", _V, "P", "Digest of the document."),
                ("harness", _V, "", "Name of the harness."),
                ("version", _V, "?", "Its version."),
                ("repository", _V, "?", "Where it is published."),
                ("timer", _V, "", "What times a run."),
                ("primary_statistic", _V, "", "Statistic that ranks."),
                ("correctness_reference", _V, "", "What results are checked against."),
                ("comparator", _V, "", "What checks them."),
                ("family", _V, "", "Family of comparable protocols."),
                ("notes", _V, "", "What is comparable with what."),
                ("document", _V, "", "JSON: the whole document without metadata."),
            ],
            "protocol_digest",
        ),
        _table(
            "environments",
            "Where results are measured.",
            [
                ("environment_digest", _V, "P", "Digest of the document."),
                ("vendor", _V, "", "GPU vendor; unknown where not known."),
                ("product", _V, "", "GPU product."),
                ("architecture", _V, "", "GPU architecture; unknown where not known."),
                ("runner", _V, "?", "Fleet label, where it is part of the environment."),
                ("software", _V, "", "JSON: software versions that are part of the environment."),
                ("document", _V, "", "JSON: the whole document without metadata."),
            ],
            "environment_digest",
        ),
        _table(
            "sources",
            "The leaderboards and their terms.",
            [
                ("source", _V, "P", "Short name."),
                ("name", _V, "", "Name."),
                ("url", _V, "", "Where it is published."),
                ("license", _V, "", "Licence or terms of the data."),
                ("attribution", _V, "", "What must be shown with the data."),
                ("terms", _V, "", "What the terms ask for."),
                ("redistributable", _B, "", "Whether its rows may be republished."),
                ("freshness_days", _I, "", "Days after which its last success is too old."),
                ("stale", _B, "", "Whether this snapshot uses older parts because the source could not be read."),
                ("last_success_at", _T, "", "When it was last read in full."),
            ],
            "source",
            volatile="last_success_at",
        ),
        _table(
            "run_lookup",
            "Runs by digest, sorted by it.",
            [
                ("run_digest", _V, "P", "Digest of the run's document."),
                ("run_id", _V, "P >runs", "The run."),
            ],
            "run_digest run_id",
        ),
        _table(
            "movements",
            "Runs whose standing differs from the snapshot before.",
            [
                ("comparison_key", _V, "P", "The cohort."),
                ("run_id", _V, "P", "The run."),
                ("kind", _V, "", "entered, left, rose, fell, record, changed or withdrawn."),
                ("rank_before", _I, "?", "Rank in the snapshot before."),
                ("rank_after", _I, "?", "Rank in this snapshot."),
                ("value_before", _D, "?", "Primary value in the snapshot before."),
                ("value_after", _D, "?", "Primary value in this snapshot."),
                ("previous_snapshot_id", _V, "", "The snapshot before."),
            ],
            "comparison_key run_id",
        ),
        _table(
            "source_files",
            "Files and answers that were read.",
            [
                ("content_digest", _V, "P", "SHA-256 of the content."),
                ("locator", _V, "P", "File name or API path, relative to the source."),
                ("source", _V, ">sources", "Leaderboard."),
                ("revision", _V, "?", "Upstream revision."),
                ("verified", _B, "", "false where only parts were read and the digest is the publisher's own."),
                ("media_type", _V, "", "Media type."),
                ("size_bytes", _I, "", "Size of the whole file."),
                ("fetched_at", _T, "", "When it was fetched or read from its folder."),
                ("parser", _V, "", "Reader and its version."),
                ("rows_read", _I, "", "Rows in the file."),
                ("rows_kept", _I, "", "Rows that are in the tables."),
                ("rows_duplicate", _I, "", "Rows that say again what another row says."),
                ("rows_rejected", _I, "", "Rows in `rejects`."),
            ],
            "source locator content_digest",
            volatile="fetched_at",
        ),
        _table(
            "rejects",
            "Rows and cases that could not be normalised.",
            [
                ("content_digest", _V, "P >source_files", "File or answer."),
                ("locator", _V, "P >source_files", "Its name."),
                ("item", _V, "P", "Row number or JSON path; <row>/benchmark/<n> for a case."),
                ("reason", _V, "", "Reason code."),
                ("detail", _V, "", "What is wrong, for a person."),
                ("raw", _V, "", "JSON: the row, long text cut and source text replaced by its digest."),
            ],
            "locator content_digest item",
        ),
        _table(
            "drift",
            "Surprises in form.",
            [
                ("source", _V, "P >sources", "Leaderboard."),
                ("locator", _V, "P", "File or answer."),
                ("field", _V, "P", "Field."),
                ("kind", _V, "P", "added, missing, retyped, unknown_value, conflict or incomplete."),
                ("detail", _V, "P", "What was seen."),
                ("first_seen_at", _T, "", "When it was first seen in this warehouse."),
            ],
            "source locator field kind detail",
            volatile="first_seen_at",
        ),
        _table(
            "artifacts",
            "Source texts of submissions, by digest.",
            [
                ("source_digest", _V, "P", "SHA-256 of the bytes."),
                ("size_bytes", _I, "", "Size in bytes."),
                ("lines", _I, "?", "Lines, where the text was read here."),
                ("language", _V, "?", "Language, where the text was read here."),
                ("media_type", _V, "?", "Media type, where the text was read here."),
                ("license", _V, "", "Licence: unknown."),
                ("text_stored", _B, "", "Whether the text is kept."),
                ("declared_leaderboard", _V, "?", "Board that a #!POPCORN line of the text declares."),
                (
                    "declared_gpus",
                    _L,
                    "?",
                    "GPUs that a #!POPCORN line of the text declares; null where not read.",
                ),
            ],
            "source_digest",
        ),
        _table(
            "techniques",
            "Traits that source texts prove, each with the first line that does.",
            [
                ("source_digest", _V, "P >artifacts", "The text."),
                ("trait", _V, "P", "The trait, as in tma or num-warps."),
                ("line", _I, "P", "First line that proves it, from 1; a line that is only a comment proves nothing."),
                ("value", _V, "?", "The trait's value, where it has one: stages, warps, tiles, vector widths."),
                ("context", _V, "", "code, docstring or comment (behind code)."),
                ("evidence", _V, "", "The line, or the part of it around the proof, at most 200 characters."),
                ("extractor", _V, "", "Version of the detectors."),
            ],
            "source_digest trait line",
        ),
        _table(
            "changes",
            "Submissions with an earlier one of their author on the board: what changed since the last of them.",
            [
                ("submission_key", _V, "P >submissions", "The submission."),
                ("previous_submission_key", _V, ">submissions", "Its author's last earlier one there, by time and id."),
                ("lines_added", _I, "?", "Lines added, LF and CRLF being one; null where a text was not read."),
                ("lines_removed", _I, "?", "Lines removed, LF and CRLF being one; null where a text was not read."),
                ("line_endings_changed", _B, "?", "Whether a line that is otherwise the same ends otherwise."),
                ("value_ratio", _D, "?", "Its best value over the previous one's, in the one cohort that both are in."),
            ],
            "submission_key",
        ),
        _table(
            "artifact_families",
            "Source texts that are equal up to comments, white space and identifiers, or nearly so, by family.",
            [
                ("source_digest", _V, "P >artifacts", "The text."),
                ("family", _V, ">artifacts", "The family: the smallest digest in it."),
                ("size", _I, "", "Texts in the family."),
                ("first_author_key", _V, "? >authors", "Who first submitted any of the family."),
                ("first_submission_key", _V, ">submissions", "The first submission of any of the family."),
            ],
            "family source_digest",
        ),
        _table(
            "snapshot",
            "This snapshot.",
            [
                ("snapshot_id", _V, "P", "Name of its folder."),
                ("created_at", _T, "", "When it was made."),
                ("content_digest", _V, "", "Digest over the rows of all tables but this one and `movements`."),
                ("schema_version", _V, "", "Version of the published schema."),
                ("ranking_policy", _V, "", "Policy of the ranks."),
                ("facts_revision", _V, "", "Revision of the problem facts."),
                ("code_version", _V, "", "Version of the pipeline."),
                ("inputs", _V, "", "JSON: inputs with revisions and digests."),
            ],
            "snapshot_id",
        ),
    ]
}

# Parquet alone, never in the DuckDB file.
PARQUET_ONLY: dict[str, Table] = {
    table.name: table
    for table in [
        _table(
            "artifact_texts",
            "Mirrored source texts. A file for each first digit of the digests, in row groups of about a megabyte.",
            [
                ("source_digest", _V, "P >artifacts", "SHA-256 of the bytes."),
                ("text", _V, "?", "The text; null where the bytes are no UTF-8."),
                ("bytes", "BLOB", "?", "The bytes, where they are no UTF-8; null where they are."),
            ],
            "source_digest",
        ),
        _table(
            "change_texts",
            "What changed as unified diffs with three lines of context, which git apply takes; of a file named source.",
            [
                ("submission_key", _V, "P >changes", "The submission."),
                ("diff", _V, "", "The diff against the previous submission's text."),
            ],
            "submission_key",
        ),
    ]
}

# What a source room hands over for each run-to-be; `sql/runs.sql` makes `runs` of it. Never published.
_RESULT_ROWS = [
    *[row for row in _RUN if row[0] not in ("run_digest", "comparison_key")],
    ("submission_id", _I, "", "Upstream's id of the submission."),
    ("version_label", _V, "?", "Evaluation stack, where the source has one."),
    ("correctness_key", _V, "?", "Digest of the workload's correctness object."),
    ("passed", _B, "", "Passed in the sense of the source, and not revoked."),
    ("revoked", _B, "", "Hacked or disqualified."),
    ("leaderboard_mode", _B, "", "Ran in the mode that the platform ranks."),
    ("score_s", _D, "?", "Board's score of the whole run in seconds."),
    ("below_floor", _B, "", "Figure below what is plausible for any kernel."),
    ("below_sol_bound", _B, "", "Figure below the kernel's speed-of-light bound."),
    ("flags", _L, "", "Marks of oddities."),
    ("external_id", _V, "", "Id under which the result is known upstream."),
    ("observed_at", _T, "?", "When the result was made."),
    *_ORIGIN,
]
RESULTS = _table("results", "Runs before keys, digests and eligibility.", _RESULT_ROWS, "run_id")

# The narrow columns of results that standings are made of. Never published.
SCORES = _table(
    "scores",
    "What a result says of its submission's place on a board.",
    [
        row
        for row in _RESULT_ROWS
        if row[0]
        in {
            "source",
            "submission_key",
            "problem",
            "runner",
            "version_label",
            "passed",
            "revoked",
            "leaderboard_mode",
            "score_s",
            "native_metrics",
            "observed_at",
        }
    ],
    "submission_key",
)
