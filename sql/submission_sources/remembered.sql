-- Submissions whose source was read, with its digest; a null one where there was none.
select submission_id, source_digest, source_bytes
from submissions
semi join (select source_digest from artifacts where lines is not null) as read using (source_digest)
where source = 'gpumode-kernelbot'
union all
select submission_id, null, null
from submissions
semi join (select submission_key from runs where identity = 'final') as settled using (submission_key)
where source = 'gpumode-kernelbot' and source_digest is null
order by submission_id
