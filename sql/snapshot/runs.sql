-- The runs of some problems, in published order, each after its problem.
select problem as part, *
from all_runs
where source = $source and problem between $first and $last and list_contains($problems, problem)
order by problem, comparison_key nulls last, primary_value nulls last, run_id
