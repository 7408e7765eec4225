-- Hides the table `runs` behind the eligible runs of one cohort that had been observed by an instant.
create temp table runs as
select *
from kernelmart.main.runs
where comparison_key = $comparison_key and eligible and observed_at <= $as_of
