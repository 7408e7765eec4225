-- The pairs of different texts that follow each other, of those where both were read.
select distinct previous_digest, source_digest
from successions
semi join source_rows as previous on previous.source_digest = successions.previous_digest
semi join source_rows as this on this.source_digest = successions.source_digest
where previous_digest <> source_digest
order by all
