select * rename (kind as workload_kind)
from cases
where workload_digest = $digest
order by source, problem, occurrence
limit 1
