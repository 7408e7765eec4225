-- Names of an operation on its platforms, and the slugs of further boards that are the same one.
with named as (
    select
        problem_digest,
        unnest([lower(problem), slug]) as alias,
        first_value(slug) over (partition by problem_digest order by source, problem) as operation_slug
    from problems
)

select distinct
    catalogue_id('operations', problem_digest) as "operationId",
    alias as "alias"
from named
where alias != operation_slug
order by "operationId", "alias"
