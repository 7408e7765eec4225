-- A submission's best run in each cohort that it is in.
select
    runs.gpu,
    runs.runner,
    runs.case_index,
    runs.primary_statistic,
    runs.primary_unit,
    runs.primary_value,
    ranks.rank,
    ranks.cohort_runs,
    ranks.author_rank,
    ranks.cohort_authors,
    ranks.gap_to_best,
    runs.evidence_level,
    runs.observed_at,
    runs.run_id,
    runs.run_digest
from runs
cross join snapshot
join ranks on ranks.run_id = runs.run_id and ranks.policy = snapshot.ranking_policy
where runs.submission_key = $submission_key
qualify row_number() over (partition by runs.comparison_key order by ranks.rank, runs.observed_at nulls last, runs.run_id) = 1
order by runs.gpu, runs.runner, runs.case_index nulls first, runs.run_id
