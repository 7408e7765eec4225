-- Stored documents hash to the digests that name them: of implementations a sample, or with --all every one.
select name || ' ' || stated || ': its document hashes to something else' as found
from (
    select 'implementation' as name, implementation_digest as stated, document
    from implementations
    where hash(implementation_digest) % $every = 0
    union all
    select 'case', workload_digest, document from cases
    union all
    select 'problem', problem_digest, document from problems
    union all
    select 'protocol', protocol_digest, document from protocols
    union all
    select 'environment', environment_digest, document from environments
)
where digest(document) <> stated
