-- Wanted pairs that an earlier part has compared.
select older.*
from older
semi join wanted using (previous_digest, source_digest)
