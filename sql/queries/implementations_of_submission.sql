select implementation_digest, language, architectures, products, dtypes
from implementations
where submission_key = $submission_key
order by products, implementation_digest
