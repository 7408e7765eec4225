-- Each submission with its author's last earlier one on the board. What has no time or no author has no place in that order.
select *
from (
    select
        submission_key,
        source_digest,
        lag(submission_key) over author as previous_submission_key,
        lag(source_digest) over author as previous_digest
    from submissions
    where author_key is not null and submitted_at is not null
    window author as (partition by source, problem, author_key order by submitted_at, submission_id, submission_key)
)
where previous_submission_key is not null
