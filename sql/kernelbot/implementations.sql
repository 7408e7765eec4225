-- The implementation documents of the rows that are the first of theirs.
select
    digest(document) as implementation_digest,
    'gpumode-kernelbot:' || submission_id as submission_key,
    problem_digest,
    language,
    [architecture] as architectures,
    [product] as products,
    coalesce(dtypes, []) as dtypes,
    document
from (select *, implementation_document(kept_rows) as document from kept_rows where implements)
