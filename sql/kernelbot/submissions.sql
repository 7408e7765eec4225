-- The submissions that a row speaks for.
select
    'gpumode-kernelbot:' || submission_id as submission_key,
    'gpumode-kernelbot' as source,
    submission_id,
    board as problem,
    kernelbot_author(family, file_digest, user_id) as author_key,
    'submission-' || submission_id as revision,
    submitted_at,
    file_name,
    upstream_status,
    submission_score_s as score_s,
    source_digest,
    source_bytes,
    code_id,
    'unknown' as license_declared,
    'unknown' as license_concluded
from kept_rows
where speaks
