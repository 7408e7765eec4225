-- What was found in texts that are not read now.
select techniques.*
from kept_techniques as techniques
semi join carried using (source_digest)
order by techniques.source_digest, techniques.trait, techniques.line
