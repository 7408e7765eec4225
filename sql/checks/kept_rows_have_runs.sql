-- Every kept row of a file of submissions gives at least one run.
select source_files.locator || ': ' || rows_kept || ' rows kept, but runs come from ' || count(distinct runs.item) as found
from source_files
join runs on runs.content_digest = source_files.content_digest and runs.locator = source_files.locator
group by source_files.locator, source_files.content_digest, rows_kept
having rows_kept <> count(distinct runs.item)
