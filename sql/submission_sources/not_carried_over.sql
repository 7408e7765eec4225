-- The wanted texts that an earlier part does not have.
select item, source_digest
from wanted
anti join older_artifacts using (source_digest)
order by item
