-- Texts that were read before and are not now, of submissions or rows that are still there.
select artifacts.* replace (artifacts.text_stored and $texts as text_stored)
from kept_artifacts as artifacts
semi join (
    select source_digest from known_sources
    union all
    select source_digest from rows_before
) as there using (source_digest)
anti join source_rows using (source_digest)
order by artifacts.source_digest
