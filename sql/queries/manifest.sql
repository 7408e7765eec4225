-- A run's documents and what their names are made of.
select
    manifest(runs.run_id) as run,
    protocols.document as protocol,
    environments.document as environment,
    runs.source,
    runs.problem,
    runs.primary_metric,
    runs.primary_statistic,
    runs.case_index,
    runs.runner,
    runs.labels,
    submissions.submission_id,
    authors.author_name,
    cases.axes,
    protocols.version
from runs
join protocols using (protocol_digest)
join environments using (environment_digest)
join submissions using (submission_key)
left join authors using (author_key)
left join cases
    on cases.source = runs.source
    and cases.problem = runs.problem
    and cases.workload_digest = runs.workload_digest
    and cases.occurrence = 0
where runs.run_id = $run_id and runs.run_digest is not null
