-- Of runs that are there more than once, which copy is the first. Of several files that have a per-case run the first in
-- precedence keeps it, and inside that file its content decides; an aggregate run goes by mode, verdict and score, whatever
-- file it is in.
with repeated as (
    select submission_id, run_key
    from candidates
    where board is not null
    group by submission_id, run_key
    having count(*) > 1
)

select
    precedence,
    item,
    row_number() over copies as copy,
    (family = 'aggregate' or precedence = first_value(precedence) over copies)
        and (
            content is distinct from first_value(content) over copies
            or surroundings is distinct from first_value(surroundings) over copies
        ) as differs
from candidates
join repeated using (submission_id, run_key)
where board is not null
window copies as (
    partition by submission_id, run_key
    order by
        case when family = 'per_case' then precedence end,
        case when family = 'aggregate' then mode is distinct from 'leaderboard' end,
        case when family = 'aggregate' then not coalesce(passed, false) end,
        case when family = 'aggregate' and isfinite(score) then score end nulls last,
        -- Of a per-case row that is the SHA-256 of its content already.
        content,
        precedence,
        submitted_at nulls last,
        surroundings,
        item
)
