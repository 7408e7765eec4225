-- Runs whose standing under the policy differs between the snapshot before (`previous_runs`, `previous_ranks`) and this
-- one (`runs`, `ranks`, `cohorts`). A standing is a run's rank and value in one cohort; who has none there has null
-- for both, and a run that went from one cohort to another left the one and entered the other. The first kind that
-- holds of:
--   withdrawn  it stood, and upstream's row is still there, but no longer eligible; a row that lost its score may have
--              lost its runner or its cases too, and with them the last part of its run id
--   left       it stood, and does no more
--   changed    it stands as before, with another value
--   record     it is new, and holds the cohort's best with a smaller value than the best before; where nobody stood
--              before, no record fell
--   entered    it is new
--   rose, fell its rank is better, or worse
-- A run whose rank and value are what they were has not moved. One table after the other, since what sorts and joins
-- hold adds up.
create or replace temp table standings_before as
select previous_ranks.comparison_key, run_id, previous_ranks.rank, previous_runs.primary_value as value
from previous_ranks
join previous_runs using (run_id)
where previous_ranks.policy = $policy;

create or replace temp table standings_after as
select ranks.comparison_key, run_id, ranks.rank, runs.primary_value as value
from ranks
join runs using (run_id)
where ranks.policy = $policy;

create or replace temp table moved as
select
    comparison_key,
    run_id,
    standings_before.rank as rank_before,
    standings_after.rank as rank_after,
    standings_before.value as value_before,
    standings_after.value as value_after
from standings_before
full join standings_after using (comparison_key, run_id)
where rank_before is distinct from rank_after or value_before is distinct from value_after;

create or replace temp table previous_bests as
select comparison_key, min(value) as best_value from standings_before group by comparison_key;

drop table standings_before;

drop table standings_after;

create or replace temp table withdrawn as
with stood as (
    select
        comparison_key,
        run_id,
        run_id as sought
    from moved
    where rank_after is null
    union all
    select
        comparison_key,
        run_id,
        regexp_extract(run_id, '^([^/]+/[^/]+/(?:leaderboard|run/[^/]+))/', 1) as sought
    from moved
    where rank_after is null
)

select distinct stood.comparison_key, stood.run_id
from stood
join runs on runs.run_id = stood.sought
where not runs.eligible;

select
    comparison_key,
    run_id,
    case
        when withdrawn.run_id is not null then 'withdrawn'
        when rank_after is null then 'left'
        when value_before <> value_after then 'changed'
        when rank_before is null and cohorts.best_run_id = run_id and value_after < previous_bests.best_value
            then 'record'
        when rank_before is null then 'entered'
        when rank_after < rank_before then 'rose'
        else 'fell'
    end as kind,
    rank_before,
    rank_after,
    value_before,
    value_after,
    $previous_snapshot_id as previous_snapshot_id
from moved
left join withdrawn using (comparison_key, run_id)
left join previous_bests using (comparison_key)
left join cohorts using (comparison_key)
