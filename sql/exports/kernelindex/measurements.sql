-- `batch` are some rows of `runs`; their figures are those of their documents.
with figures as (
    select
        run_id,
        row_of_batch,
        sample_count,
        unnest(
            case primary_metric
                when 'score' then
                    [{metric: 'score', statistic: primary_statistic, unit: 's', value: primary_value}]
                else
                    [
                        {metric: 'latency', statistic: 'max', unit: 'ns', value: floor(max_ns + 0.5)},
                        {metric: 'latency', statistic: 'mean', unit: 'ns', value: primary_value},
                        {metric: 'latency', statistic: 'min', unit: 'ns', value: floor(min_ns + 0.5)},
                        {metric: 'latency', statistic: 'std', unit: 'ns', value: std_ns}
                    ]
            end,
            max_depth := 2
        )
    from batch
    where run_digest is not null
)

select
    catalogue_id('measurements', run_id || '/' || metric || '/' || statistic) as "id",
    catalogue_id('benchmark_runs', run_id) as "runId",
    metric as "metric",
    statistic as "statistic",
    unit as "unit",
    value as "value",
    sample_count as "sampleCount"
from figures
where value is not null
order by row_of_batch, statistic
