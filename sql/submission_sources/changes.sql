-- Each succession with what changed: nothing where the text is the same, unknown where either text was not read.
select
    successions.submission_key,
    successions.previous_submission_key,
    case when successions.previous_digest = successions.source_digest then 0 else differences.lines_added end as lines_added,
    case
        when successions.previous_digest = successions.source_digest then 0
        else differences.lines_removed
    end as lines_removed,
    case
        when successions.previous_digest = successions.source_digest then false
        else differences.line_endings_changed
    end as line_endings_changed,
    value_ratios.value_ratio
from successions
left join differences using (previous_digest, source_digest)
left join value_ratios using (submission_key)
order by successions.submission_key
