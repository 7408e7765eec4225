-- Submissions whose previous one is the one that it was before.
select submission_key
from changes
semi join kept_changes using (submission_key, previous_submission_key)
