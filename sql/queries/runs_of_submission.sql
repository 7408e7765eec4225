select
    runs.run_id,
    runs.run_digest,
    runs.case_index,
    runs.mode,
    runs.status,
    runs.gpu,
    runs.runner,
    runs.primary_statistic,
    runs.primary_unit,
    runs.primary_value,
    runs.sample_count,
    runs.eligible,
    runs.ineligible_reasons,
    runs.flags,
    runs.observed_at,
    runs.implementation_digest,
    runs.comparison_key,
    ranks.rank,
    ranks.author_rank,
    ranks.cohort_runs,
    ranks.cohort_authors,
    ranks.gap_to_best
from runs
cross join snapshot
left join ranks on ranks.run_id = runs.run_id and ranks.policy = snapshot.ranking_policy
where runs.submission_key = $submission_key
order by runs.case_index nulls first, runs.runner, runs.run_id
