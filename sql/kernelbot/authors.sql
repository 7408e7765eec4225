-- Authors with the name that their latest named submission gives.
select
    author_key,
    'gpumode-kernelbot' as source,
    any_value(author_id) as author_id,
    arg_max(user_name, (submitted_at, submission_id, user_name)) filter (user_name is not null) as author_name,
    'kernelbot-user-' || any_value(author_id) as project_slug,
    coalesce(author_name, 'KernelBot user ' || any_value(author_id)) as project_name,
    any_value(stable) as stable,
    count(distinct submission_id) as submissions
from people
group by author_key
