-- Each fall of a cohort's best, in order of observation. The falls are found in instants and values alone; only then
-- is it asked which run made each of them.
with keys as materialized (
    select comparison_key, (row_number() over ())::integer as cohort
    from (select distinct comparison_key from runs where eligible)
),

-- At one instant only the best run counts.
instants as (
    select keys.cohort, runs.observed_at, min(runs.primary_value) as value
    from runs
    join keys using (comparison_key)
    where runs.eligible and runs.observed_at is not null
    group by keys.cohort, runs.observed_at
),

history as (
    select
        *,
        min(value) over (
            partition by cohort order by observed_at rows between unbounded preceding and 1 preceding
        ) as previous_value
    from instants
),

-- Found before the runs are looked at again: runs of many cohorts may share an instant and a value.
falls as materialized (
    select keys.comparison_key, history.observed_at, history.value, history.previous_value
    from history
    join keys using (cohort)
    where history.previous_value is null or history.value < history.previous_value
),

holders as (
    select falls.*, runs.run_id
    from falls
    join runs
        on runs.comparison_key = falls.comparison_key
        and runs.observed_at = falls.observed_at
        and runs.primary_value = falls.value
    left join submissions using (submission_key)
    where runs.eligible
    qualify row_number() over (
        partition by falls.comparison_key, falls.observed_at
        order by submissions.submission_id nulls last, runs.run_id
    ) = 1
)

select
    comparison_key,
    run_id,
    lag(run_id) over in_time as previous_run_id,
    value,
    previous_value,
    observed_at,
    (epoch_us(lead(observed_at) over in_time) - epoch_us(observed_at)) / 1e6 as held_for_s
from holders
window in_time as (partition by comparison_key order by observed_at)
