-- Places of the eligible runs in their cohorts. One table after the other, since what sorts and joins hold adds up. The
-- windows carry numbers in place of comparison and author keys, because sorting those long texts would cost more than all
-- the rest.
create or replace temp table rank_cohorts as
select comparison_key, (row_number() over ())::integer as cohort
from (select distinct comparison_key from runs where eligible);

create or replace temp table rank_authors as
select author_key, (row_number() over ())::integer as author
from (select distinct author_key from submissions where author_key is not null);

create or replace temp table rank_makers as
select submission_key, submission_id, author
from submissions
left join rank_authors using (author_key);

create or replace temp table rank_entries as
select
    runs.run_id,
    rank_cohorts.cohort,
    rank_makers.author,
    runs.primary_value as value,
    runs.observed_at,
    rank_makers.submission_id
from runs
join rank_cohorts using (comparison_key)
left join rank_makers using (submission_key)
where runs.eligible;

drop table rank_makers;

-- A run without an author is nobody's best.
create or replace temp table rank_bests as
select
    run_id,
    cohort,
    value,
    author is not null
    and row_number() over (
        partition by cohort, author
        order by value, observed_at nulls last, submission_id nulls last, run_id
    ) = 1 as author_best
from rank_entries;

drop table rank_entries;

create or replace temp table rank_places as
select
    *,
    case when author_best then dense_rank() over (partition by cohort, author_best order by value) end as author_rank
from rank_bests;

drop table rank_bests;

create or replace temp table rank_totals as
select
    cohort,
    min(value) as best_value,
    count(distinct value) as distinct_ranks,
    count(*) as cohort_runs,
    count(*) filter (where author_best) as cohort_authors
from rank_places
group by cohort;

select
    $policy as policy,
    places.run_id,
    rank_cohorts.comparison_key,
    places.rank,
    places.author_rank,
    places.author_best,
    places.tied,
    places.value / rank_totals.best_value as gap_to_best,
    (places.rank - 1) / nullif(rank_totals.distinct_ranks - 1, 0) as percentile,
    rank_totals.cohort_runs,
    rank_totals.cohort_authors
from (
    select
        *,
        dense_rank() over by_value as rank,
        count(*) over (by_value range between current row and current row) > 1 as tied
    from rank_places
    window by_value as (partition by cohort order by value)
) as places
join rank_totals using (cohort)
join rank_cohorts using (cohort)
