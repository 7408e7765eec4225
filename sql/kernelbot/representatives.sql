-- What the row that speaks for a submission says of its source, and what is known of that without reading it.
select
    file_rows.submission_id,
    file_rows.file_name,
    known_sources.source_digest,
    known_sources.source_bytes,
    known_sources.submission_id is not null as source_known
from file_rows
join speakers using (precedence, item)
left join known_sources on known_sources.submission_id = file_rows.submission_id
