-- Who is behind each submission, as the row that speaks for it says.
select
    kernelbot_author(file.family, file.content_digest, user_id) as author_key,
    user_id as author_id,
    user_name,
    file.family = 'aggregate' as stable,
    file_rows.submission_id,
    submitted_at
from file_rows
join file using (precedence)
join speakers using (precedence, item)
where user_id is not null
