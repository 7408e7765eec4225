-- Figures are finite and of the sign that they must have.
select run_id || ': a figure is out of range' as found
from runs
where primary_value < 0 or isnan(primary_value) or isinf(primary_value)
    or mean_ns <= 0 or min_ns <= 0 or max_ns <= 0 or std_ns < 0 or sample_count < 1
    or isnan(mean_ns) or isnan(min_ns) or isnan(max_ns) or isnan(std_ns)
