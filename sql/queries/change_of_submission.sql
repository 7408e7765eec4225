select
    changes.*,
    previous.submission_id as previous_submission_id,
    previous.submitted_at as previous_submitted_at,
    previous.source_digest as previous_source_digest
from changes
join submissions as previous on previous.submission_key = changes.previous_submission_key
where changes.submission_key = $submission_key
