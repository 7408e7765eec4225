-- How many runs each reason keeps out of the ranks; a run with several reasons counts under each.
create or replace view ineligible as
select source, problem, reason, count(*) as runs
from (select source, problem, unnest(ineligible_reasons) as reason from runs)
group by source, problem, reason
order by source, problem, runs desc, reason;
