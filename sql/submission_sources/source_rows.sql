-- The rows of all files' sources, each with its file's place among them and its locator.
select place, locator, item, submission_id, source_digest, source_bytes
from rows_of_sources
join source_places using (filename)
