select
    runs.run_id,
    runs.run_digest,
    runs.problem,
    runs.case_index,
    runs.status,
    runs.gpu,
    runs.primary_unit,
    runs.primary_value,
    ranks.rank,
    ranks.cohort_runs
from runs
cross join snapshot
left join ranks on ranks.run_id = runs.run_id and ranks.policy = snapshot.ranking_policy
where runs.implementation_digest = $digest
order by runs.case_index nulls first, runs.run_id
