-- One row for each comparison key with an eligible run. What the key is made of is the same in all of its runs, so that
-- any of them tells it; boards and runners may be several. One table after the other, since what sorts and joins hold adds up;
-- authors and quantiles are found by grouping and in windows, which can spill: an aggregate that keeps all values of all
-- cohorts cannot.
create or replace temp table cohort_numbers as
select comparison_key, (row_number() over ())::integer as cohort
from (select distinct comparison_key from runs where eligible);

create or replace temp table cohort_summaries as
select
    comparison_key,
    any_value(source) as source,
    any_value(problem_digest) as problem_digest,
    any_value(workload_digest) as workload_digest,
    any_value(protocol_digest) as protocol_digest,
    any_value(environment_digest) as environment_digest,
    any_value(gpu) as gpu,
    case when min(runner) = max(runner) then min(runner) end as runner,
    any_value(primary_metric) as metric,
    any_value(primary_statistic) as statistic,
    any_value(primary_unit) as unit,
    count(*) as runs,
    min(primary_value) as best_value,
    min(observed_at) as first_observed_at,
    max(observed_at) as last_observed_at
from runs
where eligible
group by comparison_key;

create or replace temp table cohort_boards as
select comparison_key, list(problem order by problem) as problems
from (select distinct comparison_key, problem from runs where eligible)
group by comparison_key;

create or replace temp table cohort_makers as
select cohort, count(*) as authors
from (
    select distinct cohort, submissions.author_key
    from runs
    join cohort_numbers using (comparison_key)
    join submissions using (submission_key)
    where runs.eligible and submissions.author_key is not null
)
group by cohort;

create or replace temp table cohort_quantiles as
select cohort, any_value(median_and_p90) as median_and_p90
from (
    select cohort, quantile_cont(runs.primary_value, [0.5, 0.9]) over (partition by cohort) as median_and_p90
    from runs
    join cohort_numbers using (comparison_key)
    where runs.eligible
)
group by cohort;

create or replace temp table cohort_holders as
select comparison_key, runs.run_id
from cohort_summaries
join runs using (comparison_key)
left join submissions using (submission_key)
where runs.eligible and runs.primary_value = cohort_summaries.best_value
qualify row_number() over (
    partition by comparison_key
    order by runs.observed_at nulls last, submissions.submission_id nulls last, runs.run_id
) = 1;

select
    summaries.comparison_key,
    summaries.source,
    boards.problems,
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
    coalesce(makers.authors, 0) as authors,
    summaries.best_value,
    quantiles.median_and_p90[1] as median_value,
    quantiles.median_and_p90[2] as p90_value,
    holders.run_id as best_run_id,
    summaries.first_observed_at,
    summaries.last_observed_at
from cohort_summaries as summaries
join cohort_numbers using (comparison_key)
join cohort_boards as boards using (comparison_key)
join cohort_holders as holders using (comparison_key)
join cohort_quantiles as quantiles using (cohort)
left join cohort_makers as makers using (cohort)
