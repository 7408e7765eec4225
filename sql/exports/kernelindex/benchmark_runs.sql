-- `batch` are some rows of `runs`. Those without a document have no place in the catalogue.
with described as (
    select
        batch.*,
        run_document(batch) as document,
        protocols.document as protocol,
        environments.document as environment,
        environments.vendor,
        environments.product,
        environments.architecture as hardware_architecture,
        submissions.source_digest is not null as source_available,
        cases.correctness_key,
        {
            source: batch.source, problem: batch.problem, primary_metric: batch.primary_metric,
            case_index: batch.case_index, runner: batch.runner, labels: batch.labels,
            submission_id: submissions.submission_id, author_name: authors.author_name, axes: cases.axes
        } as named_run,
        {
            source: batch.source, primary_metric: batch.primary_metric, primary_statistic: batch.primary_statistic,
            version: protocols.version
        } as named_protocol,
        {
            source: batch.source, primary_metric: batch.primary_metric, runner: batch.runner, version: protocols.version
        } as named_environment
    from batch
    join submissions on submissions.submission_key = batch.submission_key
    left join authors on authors.author_key = submissions.author_key
    join cases
        on cases.source = batch.source
        and cases.problem = batch.problem
        and cases.workload_digest = batch.workload_digest
        and cases.occurrence = 0
    join protocols on protocols.protocol_digest = batch.protocol_digest
    join environments on environments.environment_digest = batch.environment_digest
    where batch.run_digest is not null
)

select
    catalogue_id('benchmark_runs', run_id) as "id",
    run_digest as "runDigest",
    catalogue_id('implementations', implementation_digest) as "implementationId",
    catalogue_id('workloads', workload_digest) as "workloadId",
    catalogue_id('sources', source) as "sourceId",
    status as "status",
    instant(observed_at) as "observedAt",
    instant(created_at) as "publishedAt",
    vendor as "hardwareVendor",
    product as "hardwareModel",
    hardware_architecture as "hardwareArchitecture",
    protocol_digest as "protocolKey",
    environment_digest as "environmentKey",
    correctness_key as "correctnessKey",
    comparison_key as "comparisonKey",
    primary_metric as "primaryMetric",
    primary_statistic as "primaryStatistic",
    primary_value as "primaryValue",
    primary_unit as "primaryUnit",
    sample_count as "sampleCount",
    evidence_level = 'reported' as "reported",
    source_available as "sourceAvailable",
    false as "installable",
    true as "sourceNative",
    -- The sources publish figures alone, neither samples nor logs.
    false as "hasRawEvidence",
    concat(
        '{"run":', with_metadata(document, run_metadata(named_run)),
        ',"protocol":', with_metadata(protocol, protocol_metadata(named_protocol)),
        ',"environment":', with_metadata(environment, environment_metadata(named_environment)), '}'
    )::json as "manifest"
from described
cross join snapshot
order by row_of_batch
