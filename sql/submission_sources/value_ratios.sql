-- This submission's best eligible value over the previous one's, where there is one cohort that both are in.
with bests as (
    select submission_key, comparison_key, min(primary_value) as value
    from runs
    where eligible
    group by submission_key, comparison_key
)

select successions.submission_key, any_value(this.value / previous.value) as value_ratio
from successions
join bests as this using (submission_key)
join bests as previous
    on previous.submission_key = successions.previous_submission_key
    and previous.comparison_key = this.comparison_key
group by successions.submission_key
having count(*) = 1
