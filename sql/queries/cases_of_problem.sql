select
    cases.workload_digest,
    cases.occurrence,
    cases.kind,
    (
        select list(distinct case_index order by case_index)
        from runs
        where
            runs.source = $source
            and runs.problem = $problem
            and runs.workload_digest = cases.workload_digest
            and case_index is not null
    ) as case_indices,
    cases.external_id,
    cases.axes,
    cases.tensors,
    cases.suite_cases,
    cases.statistic,
    cases.correctness,
    cases.baseline_latency_ms,
    cases.sol_bound_ms
from cases
where cases.source = $source and cases.problem = $problem
order by cases.kind desc, case_indices nulls last, cases.workload_digest, cases.occurrence
