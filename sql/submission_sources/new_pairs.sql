-- Wanted pairs that an earlier part has not compared.
select previous_digest, source_digest
from wanted
anti join older using (previous_digest, source_digest)
order by all
