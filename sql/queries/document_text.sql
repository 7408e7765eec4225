select
    artifacts.*,
    (
        select list(submission_key order by submission_id, submission_key)
        from submissions
        where submissions.source_digest = artifacts.source_digest
    ) as submissions
from artifacts
where source_digest = $digest
