-- `batch` are some rows of `artifacts`. The texts themselves stay where they were published.
select
    catalogue_id('artifacts', source_digest) as "id",
    source_digest as "contentDigest",
    'source' as "kind",
    media_type as "mediaType",
    size_bytes as "sizeBytes",
    'upstream' as "storage",
    null::varchar as "uri",
    license as "license",
    instant(created_at) as "createdAt"
from batch
cross join snapshot
order by row_of_batch
