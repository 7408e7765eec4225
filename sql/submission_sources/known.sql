-- What is known of each submission's source. Of several texts the one with the smallest digest counts; a null digest says
-- that the source was read and there is none.
with read as (
    select submission_id, min({source_digest: source_digest, source_bytes: source_bytes}) as found
    from source_rows
    where source_digest is not null
    group by submission_id
),

without as (
    select distinct submission_id
    from source_rows
    anti join read using (submission_id)
    anti join known_sources using (submission_id)
)

select submission_id, found.source_digest as source_digest, found.source_bytes as source_bytes from read
union all
select submission_id, source_digest, source_bytes from known_sources anti join read using (submission_id)
union all
select submission_id, null, null from without
order by submission_id
