select
    catalogue_id('record_events', ranking_policy || '/' || comparison_key || '/' || run_id) as "id",
    comparison_key as "comparisonKey",
    catalogue_id('benchmark_runs', run_id) as "runId",
    catalogue_id('benchmark_runs', previous_run_id) as "previousRunId",
    ranking_policy as "policyVersion",
    'new_run' as "cause",
    instant(observed_at) as "at",
    instant(created_at) as "createdAt"
from records
cross join snapshot
order by comparison_key, observed_at, run_id
