-- The document of a run hashes to its digest: a sample of them, or with --all every one.
select runs.run_id || ': its document does not hash to its digest' as found
from runs
where run_digest is not null
    and hash(runs.run_id) % $every = 0
    and digest(run_document(runs)) <> run_digest
