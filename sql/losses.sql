-- Sources and boards that have lost more than a tenth of their submissions, runs or eligible runs.
with counted as (
    select
        source,
        problem,
        what,
        count(*) filter (earlier) as before,
        count(*) filter (not earlier) as now
    from (
        select source, problem, 'submissions' as what, true as earlier from submissions_before
        union all
        select source, problem, 'submissions', false from submissions_now
        union all
        select source, problem, 'runs', true from runs_before
        union all
        select source, problem, 'runs', false from runs_now
        union all
        select source, problem, 'eligible runs', true from runs_before where eligible
        union all
        select source, problem, 'eligible runs', false from runs_now where eligible
    )
    group by grouping sets ((source, what), (source, problem, what))
)
select source, problem, what, before, now
from counted
where 10 * now < 9 * before
order by source, problem nulls first, what = 'eligible runs', what = 'submissions'
