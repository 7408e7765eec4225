-- One wide row per run: all that its record page shows, but for the list of figures in `measurements`, which are many
-- to a run. What the source does not say is null.
create or replace view run_record as
select
    -- the result
    runs.run_id,
    runs.run_digest,
    runs.identity,
    runs.external_id,
    runs.status,
    runs.mode,
    runs.primary_metric,
    runs.primary_statistic,
    runs.primary_unit,
    runs.primary_value,
    runs.sample_count,
    runs.mean_ns,
    runs.min_ns,
    runs.max_ns,
    runs.std_ns,
    runs.native_metrics,
    runs.labels,
    runs.system,
    runs.evidence_level,
    runs.flags,
    runs.observed_at,
    -- its place
    runs.eligible,
    runs.ineligible_reasons,
    runs.comparison_key,
    ranks.rank,
    ranks.author_rank,
    ranks.author_best,
    ranks.tied,
    ranks.gap_to_best,
    ranks.percentile,
    ranks.cohort_runs,
    ranks.cohort_authors,
    cohorts.best_value as cohort_best_value,
    cohorts.median_value as cohort_median_value,
    cohorts.best_run_id as cohort_best_run_id,
    -- what ran, and whose it is
    submissions.author_key,
    authors.project_slug,
    authors.project_name,
    authors.stable as author_stable,
    runs.submission_key,
    submissions.submission_id,
    submissions.revision,
    submissions.submitted_at,
    submissions.upstream_status,
    submissions.license_declared,
    submissions.license_concluded,
    submissions.file_name,
    submissions.source_digest,
    submissions.source_bytes,
    artifacts.lines as source_lines,
    artifacts.language as source_language,
    artifacts.media_type as source_media_type,
    coalesce(artifacts.text_stored, false) as source_text_stored,
    runs.implementation_digest,
    implementations.language,
    implementations.architectures,
    implementations.products,
    implementations.dtypes,
    -- on which problem and workload
    runs.problem,
    runs.problem_digest,
    problems.title as problem_title,
    problems.slug as problem_slug,
    problems.family as problem_family,
    problems.scoring as problem_scoring,
    problems.curated as problem_curated,
    runs.case_index,
    runs.workload_digest,
    cases.kind as workload_kind,
    cases.external_id as workload_external_id,
    cases.axes,
    cases.tensors,
    cases.suite_cases,
    cases.statistic as suite_statistic,
    cases.baseline_latency_ms,
    cases.sol_bound_ms,
    cases.correctness,
    cases.correctness_key,
    -- how it was measured
    runs.protocol_digest,
    protocols.harness as protocol_harness,
    protocols.version as protocol_version,
    protocols.repository as protocol_repository,
    protocols.timer as protocol_timer,
    protocols.primary_statistic as protocol_primary_statistic,
    protocols.correctness_reference as protocol_correctness_reference,
    protocols.comparator as protocol_comparator,
    protocols.family as protocol_family,
    protocols.notes as protocol_notes,
    -- and where
    runs.environment_digest,
    environments.vendor as environment_vendor,
    environments.product as environment_product,
    environments.architecture as environment_architecture,
    environments.runner as environment_runner,
    environments.software as environment_software,
    runs.runner,
    runs.gpu,
    runs.architecture,
    -- who says so
    runs.source,
    sources.name as source_name,
    sources.url as source_url,
    sources.license as source_license,
    sources.attribution as source_attribution,
    sources.terms as source_terms,
    runs.content_digest,
    runs.locator,
    runs.item,
    source_files.revision as source_revision,
    source_files.fetched_at as imported_at,
    snapshot.snapshot_id,
    snapshot.ranking_policy
from runs
cross join snapshot
left join ranks on ranks.run_id = runs.run_id and ranks.policy = snapshot.ranking_policy
left join cohorts on cohorts.comparison_key = ranks.comparison_key
left join submissions on submissions.submission_key = runs.submission_key
left join authors on authors.author_key = submissions.author_key
left join artifacts on artifacts.source_digest = submissions.source_digest
left join implementations on implementations.implementation_digest = runs.implementation_digest
left join problems on problems.source = runs.source and problems.problem = runs.problem
-- A kernel may list a case again with another baseline; the first stands for all.
left join cases
    on cases.source = runs.source
    and cases.problem = runs.problem
    and cases.workload_digest = runs.workload_digest
    and cases.occurrence = 0
left join protocols on protocols.protocol_digest = runs.protocol_digest
left join environments on environments.environment_digest = runs.environment_digest
left join sources on sources.source = runs.source
left join source_files on source_files.content_digest = runs.content_digest and source_files.locator = runs.locator;
