-- Rejected rows of a file are those in `rejects`; cases of a row are not rows.
select source_files.locator || ': ' || rows_rejected || ' rows rejected, but ' || count(rejects.item) || ' in rejects' as found
from source_files
left join rejects on rejects.content_digest = source_files.content_digest
    and rejects.locator = source_files.locator
    and rejects.item not like '%/benchmark/%'
group by source_files.locator, source_files.content_digest, rows_rejected
having rows_rejected <> count(rejects.item)
