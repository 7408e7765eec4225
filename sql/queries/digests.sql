-- What goes by a digest between $first and $last, one row per digest and thing.
select kind, id, digest, source, detail, true as exact
from (
    select 'run' as kind, run_id as id, run_digest as digest, split_part(run_id, ':', 1) as source, null as detail
    from run_lookup
    where run_digest between $first and $last
    union all
    select 'implementation', implementation_digest, implementation_digest, null, submission_key
    from implementations
    where implementation_digest between $first and $last
    union all
    select 'workload', workload_digest, workload_digest, min(source), string_agg(distinct problem, ', ' order by problem)
    from cases
    where workload_digest between $first and $last
    group by workload_digest
    union all
    select 'problem', problem, problem_digest, source, title
    from problems
    where problem_digest between $first and $last
    union all
    select 'board', comparison_key, comparison_key, source, array_to_string(problems, ', ') || ' on ' || gpu
    from cohorts
    where comparison_key between $first and $last
    union all
    select 'protocol', protocol_digest, protocol_digest, null, harness
    from protocols
    where protocol_digest between $first and $last
    union all
    select 'environment', environment_digest, environment_digest, null, product
    from environments
    where environment_digest between $first and $last
    union all
    select 'text', source_digest, source_digest, null, null
    from artifacts
    where source_digest between $first and $last
)
order by kind, digest, source, id
limit $limit
