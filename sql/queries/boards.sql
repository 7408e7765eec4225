-- Cohorts of a problem, or those in whose key a digest takes part, with their cases, labels and holders of the best.
with chosen as (
    select *
    from cohorts
    where
        ($problem is null or (source = $source and list_contains(problems, $problem)))
        and (
            $digest is null
            or $digest in (comparison_key, workload_digest, protocol_digest, environment_digest)
        )
),

members as (
    select
        runs.comparison_key,
        coalesce(list(distinct case_index order by case_index) filter (where case_index is not null), []) as case_indices,
        list(distinct runs.runner order by runs.runner) as runners
    from runs
    join chosen using (comparison_key)
    where runs.eligible and ($problem is null or runs.problem = $problem)
    group by runs.comparison_key
)

select
    chosen.comparison_key,
    chosen.source,
    chosen.problems,
    members.case_indices,
    chosen.gpu,
    members.runners,
    protocols.version,
    chosen.metric,
    chosen.statistic,
    chosen.unit,
    chosen.runs,
    chosen.authors,
    chosen.best_value,
    chosen.median_value,
    chosen.p90_value,
    authors.project_name as best_author,
    chosen.best_run_id,
    chosen.first_observed_at,
    chosen.last_observed_at,
    chosen.problem_digest,
    chosen.workload_digest,
    chosen.protocol_digest,
    chosen.environment_digest
from chosen
join members using (comparison_key)
left join protocols on protocols.protocol_digest = chosen.protocol_digest
left join runs as best on best.run_id = chosen.best_run_id
left join submissions on submissions.submission_key = best.submission_key
left join authors on authors.author_key = submissions.author_key
order by chosen.source, chosen.problems, members.case_indices, chosen.gpu, members.runners, chosen.comparison_key
