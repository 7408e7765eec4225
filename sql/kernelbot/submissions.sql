-- The submissions that a row of this file speaks for.
select
    'gpumode-kernelbot:' || file_rows.submission_id as submission_key,
    'gpumode-kernelbot' as source,
    file_rows.submission_id,
    kept.board as problem,
    kernelbot_author(file, user_id) as author_key,
    'submission-' || file_rows.submission_id as revision,
    submitted_at,
    file_rows.file_name,
    upstream_status,
    speakers.score_s,
    representatives.source_digest,
    representatives.source_bytes,
    code_id,
    'unknown' as license_declared,
    'unknown' as license_concluded
from file_rows
cross join file
join speakers on speakers.precedence = file.precedence and speakers.item = file_rows.item
join kept on kept.precedence = file.precedence and kept.item = file_rows.item
join representatives on representatives.submission_id = file_rows.submission_id
