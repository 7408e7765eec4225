-- Places of one cohort, best first: each author's best, or every run. What is joined is first cut down to the cohort and its
-- problems, as the tables are sorted by them.
with places as (
    select *
    from ranks
    where
        comparison_key = $comparison_key
        and policy = (select ranking_policy from snapshot)
        and ($every_run or author_rank is not null)
),

shown as (
    select * from places where rank <= (select max(rank) from (select rank from places order by rank limit $limit))
),

cohort_runs as (
    select * from runs where comparison_key = $comparison_key
),

cohort_submissions as (
    select *
    from submissions
    where problem in (select unnest(problems) from cohorts where comparison_key = $comparison_key)
)

select
    shown.rank,
    shown.author_rank,
    shown.tied,
    shown.gap_to_best,
    authors.project_name as author,
    cohort_submissions.author_key,
    cohort_runs.primary_value as value,
    cohort_runs.primary_unit as unit,
    cohort_runs.primary_statistic as statistic,
    cohort_runs.sample_count,
    cohort_runs.observed_at,
    cohort_runs.problem,
    cohort_runs.case_index,
    cohort_runs.runner,
    cohort_submissions.revision,
    cohort_runs.submission_key,
    cohort_runs.run_id,
    cohort_runs.run_digest
from shown
join cohort_runs using (run_id)
join cohort_submissions using (submission_key)
left join authors using (author_key)
order by shown.rank, cohort_runs.observed_at nulls last, cohort_submissions.submission_id, cohort_runs.run_id
limit $limit
