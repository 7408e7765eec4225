-- Results with their keys, digests and eligibility: the one definition of what is ranked, and why not.
with keyed as (
    select
        *,
        passed
        and leaderboard_mode
        and primary_value is not null
        and environment_digest is not null
        and workload_digest is not null
        and implementation_digest is not null
        and protocol_digest is not null as documented
    from results
),

reasoned as (
    select
        *,
        -- Nearly every row is ranked, and a list is dear to make.
        case
            when documented and not revoked and not below_floor and not below_sol_bound then []
            else
                list_filter(
                    [
                        case when not passed and not revoked then 'NOT_PASSED' end,
                        case when revoked then 'REVOKED' end,
                        case
                            when not leaderboard_mode then
                                'MODE_' || coalesce(
                                    nullif(regexp_replace(upper(split_part(mode, '.', 1)), '[^A-Z0-9]', '_', 'g'), ''), 'UNKNOWN'
                                )
                        end,
                        case when primary_value is null then 'NO_VALUE' end,
                        case when environment_digest is null then 'NO_ENVIRONMENT' end,
                        case when below_floor then 'BELOW_FLOOR' end,
                        case when below_sol_bound then 'BELOW_SOL_BOUND' end
                    ],
                    lambda reason: reason is not null
                )
        end as ineligible_reasons,
        case when documented then digest(run_document(keyed)) end as run_digest,
        case when documented then comparison_key(keyed) end as comparison_key
    from keyed
)

select
    run_id,
    source,
    submission_key,
    problem,
    mode,
    status,
    runner,
    gpu,
    architecture,
    case_index,
    workload_digest,
    problem_digest,
    implementation_digest,
    protocol_digest,
    environment_digest,
    run_digest,
    identity,
    comparison_key,
    primary_metric,
    primary_statistic,
    primary_unit,
    primary_value,
    sample_count,
    mean_ns,
    min_ns,
    max_ns,
    std_ns,
    native_metrics,
    labels,
    system,
    len(ineligible_reasons) = 0 as eligible,
    ineligible_reasons,
    flags,
    'reported' as evidence_level,
    external_id,
    observed_at,
    content_digest,
    locator,
    item
from reasoned
