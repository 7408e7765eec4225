-- What was read before over what is only stated, of submissions that are still there; that there was nothing never wins.
with present as (
    select kept.*
    from kept_known as kept
    semi join (select submission_id from file_rows) as there using (submission_id)
),

read as (
    select *
    from present
    where source_digest is not null or submission_id not in (select submission_id from known_sources)
)

select * from read
union all
select * from known_sources anti join read using (submission_id)
order by submission_id
