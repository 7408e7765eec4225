-- The row that speaks for each submission, and the best score of its leaderboard runs.
select submission_id, first.precedence as precedence, first.item as item, score_s
from (
    select
        candidates.submission_id,
        min(
            {
                precedence: candidates.precedence,
                submitted_us: coalesce(epoch_us(submitted_at), 9223372036854775807),
                surroundings: surroundings,
                item: candidates.item
            }
        ) as first,
        min(leaderboard_score_s) as score_s
    from candidates
    join kept using (precedence, item)
    where kept.kept
    group by candidates.submission_id
)
