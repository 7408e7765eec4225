select metric, statistic, unit, value, sample_count
from measurements
where run_id = $run_id
order by metric, statistic
