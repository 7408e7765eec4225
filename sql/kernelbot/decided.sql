-- The rows that count, with all that is worked out over several files about each. A file's rows lie together.
select
    marked.* exclude (submission_id),
    representatives.file_name,
    representatives.source_digest,
    representatives.source_bytes,
    representatives.source_known
from marked
join representatives using (submission_id)
order by marked.precedence, marked.item
