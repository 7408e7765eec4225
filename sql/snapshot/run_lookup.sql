-- Runs by the digest of their document.
select run_digest, run_id from part_rows where run_digest is not null order by run_digest, run_id
