-- An author each. Ids that hold inside one export only are other people than those with the same number elsewhere, so
-- several projects may have one slug.
select
    catalogue_id('projects', author_key) as "id",
    project_slug as "slug",
    project_name as "name",
    lower(project_name) as "normalizedName",
    null::varchar as "canonicalUrl",
    null::varchar as "licenseExpression",
    json_object(
        'apiVersion', 'kernelindex.dev/v1alpha1',
        'kind', 'SoftwareProject',
        'metadata', json_object('name', project_slug),
        'spec', json_object(
            'name', project_name, 'host', json_object('kind', 'other', 'id', replace(author_key, ':', '/'))
        )
    ) as "manifest",
    instant(created_at) as "createdAt"
from authors
cross join snapshot
order by authors.source, author_key
