-- The document of a run hashes to its digest: a sample of them, or with --all every one.
select runs.run_id || ': its document does not hash to its digest' as found
from runs
-- Other than `and`, a case makes no document of a row that is not in the sample.
where case
    when run_digest is not null and hash(runs.run_id) % $every = 0 then digest(run_document(runs)) <> run_digest
    else false
end
