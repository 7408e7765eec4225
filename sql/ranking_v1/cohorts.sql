-- One row for each comparison key with an eligible run. What the key is made of is the same in all of its runs, so that
-- any of them tells it; boards and runners may be several.
with summaries as (
    select
        runs.comparison_key,
        any_value(runs.source) as source,
        list_sort(list(distinct runs.problem)) as problems,
        any_value(runs.problem_digest) as problem_digest,
        any_value(runs.workload_digest) as workload_digest,
        any_value(runs.protocol_digest) as protocol_digest,
        any_value(runs.environment_digest) as environment_digest,
        any_value(runs.gpu) as gpu,
        case when min(runs.runner) = max(runs.runner) then min(runs.runner) end as runner,
        any_value(runs.primary_metric) as metric,
        any_value(runs.primary_statistic) as statistic,
        any_value(runs.primary_unit) as unit,
        count(*) as runs,
        count(distinct submissions.author_key) as authors,
        min(runs.primary_value) as best_value,
        quantile_cont(runs.primary_value, 0.5) as median_value,
        quantile_cont(runs.primary_value, 0.9) as p90_value,
        min(runs.observed_at) as first_observed_at,
        max(runs.observed_at) as last_observed_at
    from runs
    left join submissions using (submission_key)
    where runs.eligible
    group by runs.comparison_key
),

holders as (
    select summaries.comparison_key, runs.run_id
    from summaries
    join runs on runs.comparison_key = summaries.comparison_key and runs.primary_value = summaries.best_value
    left join submissions using (submission_key)
    where runs.eligible
    qualify row_number() over (
        partition by summaries.comparison_key
        order by runs.observed_at nulls last, submissions.submission_id nulls last, runs.run_id
    ) = 1
)

select
    summaries.comparison_key,
    summaries.source,
    summaries.problems,
    summaries.problem_digest,
    summaries.workload_digest,
    summaries.protocol_digest,
    summaries.environment_digest,
    summaries.gpu,
    summaries.runner,
    summaries.metric,
    summaries.statistic,
    summaries.unit,
    summaries.runs,
    summaries.authors,
    summaries.best_value,
    summaries.median_value,
    summaries.p90_value,
    holders.run_id as best_run_id,
    summaries.first_observed_at,
    summaries.last_observed_at
from summaries
join holders using (comparison_key)
