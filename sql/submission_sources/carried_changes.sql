-- Changes with what was counted before where nothing was counted now.
select
    changes.* replace (
        coalesce(changes.lines_added, kept.lines_added) as lines_added,
        coalesce(changes.lines_removed, kept.lines_removed) as lines_removed,
        coalesce(changes.line_endings_changed, kept.line_endings_changed) as line_endings_changed
    )
from changes
left join kept_changes as kept using (submission_key, previous_submission_key)
order by changes.submission_key
