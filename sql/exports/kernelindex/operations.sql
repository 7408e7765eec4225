-- Boards with the same document are one operation, under the name of the first.
select
    catalogue_id('operations', problem_digest) as "id",
    slug as "slug",
    family as "family",
    title as "name",
    json_extract_string(document, '$.apiVersion') as "schemaVersion",
    problem_digest as "semanticDigest",
    with_metadata(document, json_object('name', slug, 'title', title)::varchar)::json as "manifest",
    tags as "tags",
    instant(created_at) as "createdAt",
    null::varchar as "supersedesId"
from problems
cross join snapshot
qualify row_number() over (partition by problem_digest order by source, problem) = 1
order by source, problem
