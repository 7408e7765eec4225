-- Records of the boards that fell most often, one cohort of each, as shares of the first.
with busiest as (
    select
        cohorts.source,
        cohorts.problems[1] as problem,
        cohorts.gpu,
        comparison_key,
        count(*) as falls,
        row_number() over (
            partition by cohorts.source, cohorts.problems[1]
            order by count(*) desc, max(records.observed_at) desc, comparison_key
        ) as place
    from records
    join cohorts using (comparison_key)
    group by cohorts.source, cohorts.problems[1], cohorts.gpu, comparison_key
    having count(*) > 1
),
chosen as (
    select *
    from busiest
    where place = 1
    order by falls desc, source, problem
    limit $boards
)
select
    chosen.problem,
    chosen.gpu,
    records.observed_at,
    records.value / first_value(records.value) over cohort as share
from records
join chosen using (comparison_key)
window cohort as (partition by comparison_key order by records.observed_at, records.value desc)
order by chosen.falls desc, chosen.source, chosen.problem, records.observed_at, records.value desc
