-- What an earlier part found in the wanted texts.
select older.*
from older
semi join wanted using (source_digest)
