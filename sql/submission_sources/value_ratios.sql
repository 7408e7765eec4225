-- This submission's best eligible value over the previous one's, where there is one cohort that both are in.
with bests as materialized (
    select submission_key, comparison_key, min(primary_value) as value
    from runs
    where eligible
    group by submission_key, comparison_key
),

-- On its own: were it planned together with what follows, whole cohorts might be joined with themselves.
earlier as materialized (
    select successions.submission_key, previous.comparison_key, previous.value
    from successions
    join bests as previous on previous.submission_key = successions.previous_submission_key
)

select submission_key, any_value(bests.value / earlier.value) as value_ratio
from earlier
join bests using (submission_key, comparison_key)
group by submission_key
having count(*) = 1
