-- A case that several boards have, or that a kernel lists again with another baseline, is one workload.
select
    catalogue_id('workloads', workload_digest) as "id",
    catalogue_id('operations', cases.problem_digest) as "operationId",
    workload_digest as "workloadDigest",
    json_extract_string(cases.document, '$.apiVersion') as "schemaVersion",
    with_metadata(
        cases.document,
        workload_metadata({
            kind: kind, slug: slug, title: title, external_id: external_id, axes: cases.axes
        })
    )::json as "manifest",
    shape_summary({tensors: tensors, suite_cases: suite_cases, axes: cases.axes}) as "shapeSummary",
    dtypes as "dtypes",
    case
        when kind = 'case' then list_sort(list_distinct(json_extract_string(problems.inputs, '$[*].tensor.layout')))
        else []
    end as "layoutKeys",
    instant(created_at) as "createdAt"
from cases
join problems on problems.source = cases.source and problems.problem = cases.problem
cross join snapshot
where occurrence = 0
qualify row_number() over (partition by workload_digest order by cases.source, cases.problem) = 1
order by cases.source, cases.problem, workload_digest
