-- Runs of each board, the largest boards first.
select source, problem, count(*) filter (eligible) as eligible, count(*) filter (not eligible) as others
from runs
group by source, problem
order by count(*) desc, source, problem
limit $boards
