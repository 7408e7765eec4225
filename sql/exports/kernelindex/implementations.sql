-- `batch` are some rows of `implementations`.
with described as (
    select
        batch.*,
        submissions.author_key,
        submissions.revision,
        submissions.license_declared,
        submissions.license_concluded,
        {
            source: submissions.source, problem: submissions.problem, submission_id: submissions.submission_id,
            author_name: authors.author_name
        } as named
    from batch
    join submissions using (submission_key)
    left join authors using (author_key)
)

select
    catalogue_id('implementations', implementation_digest) as "id",
    catalogue_id('projects', author_key) as "projectId",
    catalogue_id('operations', problem_digest) as "operationId",
    implementation_slug(named) as "slug",
    implementation_digest as "implementationDigest",
    revision as "sourceRevision",
    language as "language",
    null::varchar as "framework",
    architectures as "targetArchitectures",
    license_concluded as "licenseExpression",
    json_exists(document, '$.spec.source') as "sourceAvailable",
    false as "installable",
    json_extract_string(implementation_metadata(named), '$.title') as "title",
    license_declared as "licenseDeclared",
    with_metadata(document, implementation_metadata(named))::json as "manifest",
    instant(created_at) as "createdAt",
    null::varchar as "supersedesId"
from described
cross join snapshot
order by row_of_batch
