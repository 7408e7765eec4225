-- Implementations that no earlier file has.
select implementation_digest, submission_key, problem_digest, language, architectures, products, dtypes, document
from implementations
where implements
