-- Who is behind the submissions that a row of this file speaks for.
select
    kernelbot_author(file, user_id) as author_key,
    user_id as author_id,
    user_name,
    file.family = 'aggregate' as stable,
    file_rows.submission_id,
    submitted_at
from file_rows
cross join file
join speakers on speakers.precedence = file.precedence and speakers.item = file_rows.item
where user_id is not null
