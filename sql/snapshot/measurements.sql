-- Every figure of some runs, as their documents have it, with its problem.
select problem, run_id, metric, statistic, unit, value, sample_count
from (
    select
        problem,
        run_id,
        unnest(
            case primary_metric
                when 'score' then
                    [{metric: 'score', statistic: primary_statistic, unit: 's', value: primary_value}]
                else
                    [
                        {metric: 'latency', statistic: 'mean', unit: 'ns', value: primary_value},
                        {metric: 'latency', statistic: 'min', unit: 'ns', value: floor(min_ns + 0.5)},
                        {metric: 'latency', statistic: 'max', unit: 'ns', value: floor(max_ns + 0.5)},
                        {metric: 'latency', statistic: 'std', unit: 'ns', value: std_ns}
                    ]
            end,
            max_depth := 2
        ),
        sample_count
    from some_runs
)
where value is not null
order by problem, run_id, metric, statistic
