-- Rows of each file: kept, and said again elsewhere.
select precedence, count(*) filter (kept) as kept, count(*) filter (not kept) as duplicate
from kept
group by precedence
