-- Places of the eligible runs in their cohorts. The windows carry numbers in place of comparison and author keys,
-- because sorting those long texts would cost more than all the rest.
with keys as materialized (
    select comparison_key, (row_number() over ())::integer as cohort
    from (select distinct comparison_key from runs where eligible)
),

author_numbers as materialized (
    select author_key, (row_number() over ())::integer as author
    from (select distinct author_key from submissions where author_key is not null)
),

entries as (
    select
        runs.run_id,
        keys.cohort,
        author_numbers.author,
        runs.primary_value as value,
        runs.observed_at,
        submissions.submission_id
    from runs
    join keys using (comparison_key)
    left join submissions using (submission_key)
    left join author_numbers using (author_key)
    where runs.eligible
),

-- A run without an author is nobody's best.
bests as (
    select
        run_id,
        cohort,
        value,
        author is not null
        and row_number() over (
            partition by cohort, author
            order by value, observed_at nulls last, submission_id nulls last, run_id
        ) = 1 as author_best
    from entries
),

author_ranks as (
    select
        *,
        case
            when author_best then dense_rank() over (partition by cohort, author_best order by value)
        end as author_rank
    from bests
),

places as (
    select
        *,
        dense_rank() over by_value as rank,
        count(*) over (by_value range between current row and current row) > 1 as tied
    from author_ranks
    window by_value as (partition by cohort order by value)
),

totals as (
    select
        cohort,
        min(value) as best_value,
        max(rank) as distinct_ranks,
        count(*) as cohort_runs,
        count(*) filter (where author_best) as cohort_authors
    from places
    group by cohort
)

select
    $policy as policy,
    places.run_id,
    keys.comparison_key,
    places.rank,
    places.author_rank,
    places.author_best,
    places.tied,
    places.value / totals.best_value as gap_to_best,
    (places.rank - 1) / nullif(totals.distinct_ranks - 1, 0) as percentile,
    totals.cohort_runs,
    totals.cohort_authors
from places
join totals using (cohort)
join keys using (cohort)
