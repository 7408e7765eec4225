-- Ranks are of eligible runs and all of them, start at 1, have no gaps, and order the values.
select ranks.comparison_key || ': ' || what as found
from (
    select
        ranks.comparison_key,
        case
            when min(rank) <> 1 or max(rank) <> count(distinct rank) then 'ranks are not 1, 2, 3 …'
            when count(distinct rank) <> count(distinct primary_value) then 'equal values and equal ranks do not agree'
            when not bool_and(eligible) then 'a run that is not eligible is ranked'
        end as what
    from ranks
    join runs using (run_id)
    group by ranks.comparison_key, policy
) as ranks
where what is not null
union all
select run_id || ': eligible, but has no rank' as found
from runs
where eligible and run_id not in (select run_id from ranks)
