-- Sources that are known by their digest alone, each once.
select min(submission_id) as submission_id, source_digest, min(source_bytes) as source_bytes
from known_sources
anti join (select distinct source_digest from source_rows) as read using (source_digest)
where source_digest is not null
group by source_digest
order by source_digest
