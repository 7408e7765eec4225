-- Places of one cohort, best first: each author's best, or every run.
select
    ranks.rank,
    ranks.author_rank,
    ranks.tied,
    ranks.gap_to_best,
    authors.project_name as author,
    submissions.author_key,
    runs.primary_value as value,
    runs.primary_unit as unit,
    runs.primary_statistic as statistic,
    runs.sample_count,
    runs.observed_at,
    runs.problem,
    runs.case_index,
    runs.runner,
    submissions.revision,
    runs.submission_key,
    runs.run_id,
    runs.run_digest
from ranks
join runs using (run_id)
join submissions using (submission_key)
left join authors using (author_key)
where
    ranks.comparison_key = $comparison_key
    and ranks.policy = (select ranking_policy from snapshot)
    and ($every_run or ranks.author_rank is not null)
order by ranks.rank, runs.observed_at nulls last, submissions.submission_id, runs.run_id
limit $limit
