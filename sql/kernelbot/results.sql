-- One row per case of a per-case run, per aggregate score, and per run that has no case to show: of `kept_rows`, with
-- `workloads` looked up.
with documented as (
    select
        * exclude (cases),
        case when product is not null then digest(implementation_document(kept_rows)) end as implementation_digest,
        -- What the board's own rule makes of the case means, where the row shows them all.
        case
            when mode = 'leaderboard' and len(cases) > 0
                then list_transform(cases, lambda entry: latency_of_text(entry.mean))
        end as means,
        -- Nearly every board has all of its cases understood, and a list is dear to make.
        case
            when len(refused_specs) = 0 then cases
            else list_filter(cases, lambda entry: not list_contains(refused_specs, coalesce(entry.spec, '')))
        end as shown,
        len(cases) as stated_cases
    from kept_rows
),

entries as (
    select
        * exclude (shown, means),
        case
            when list_count(means) = len(shown) and len(shown) = stated_cases then
                case ranking_by
                    when 'geom' then exp(list_avg(list_transform(means, lambda mean: ln(mean)))) / 1e9
                    when 'mean' then list_avg(means) / 1e9
                    when 'last' then means[1] / 1e9
                end
        end as expected_score_s,
        unnest(case when len(shown) > 0 then shown else [null] end) as entry
    from documented
),

stated as (
    select
        * exclude (entry),
        entry.index as case_index,
        case when entry is not null then coalesce(entry.spec, '') end as spec,
        entry.mean as mean_text,
        entry.best as best_text,
        entry.worst as worst_text,
        entry.std as std_text,
        entry.runs as runs_text,
        figure_of_text(entry.mean) as stated_mean,
        figure_of_text(entry.best) as stated_best,
        figure_of_text(entry.worst) as stated_worst,
        figure_of_text(entry.std) as stated_std,
        figure_of_text(entry.runs) as stated_runs
    from entries
),

figures as (
    select
        *,
        case when usable_latency(stated_mean) then stated_mean end as mean_ns,
        case when usable_latency(stated_best) then stated_best end as min_ns,
        case when usable_latency(stated_worst) then stated_worst end as max_ns,
        case when usable_spread(stated_std) then stated_std end as std_ns,
        case when usable_count(stated_runs) then stated_runs::bigint end as sample_count,
        case when usable_figure(score) then score end as score_s
    from stated
),

measured as (
    select
        figures.*,
        case when family = 'aggregate' then suite_digest else workloads.workload_digest end as workload_digest,
        abs(expected_score_s / score_s - 1) > 1e-9 as contradicted,
        mean_ns < min_ns or mean_ns > max_ns as outside
    from figures
    left join workloads on workloads.board = figures.board and workloads.spec = figures.spec
),

flagged as (
    select
        *,
        -- Nearly every row has nothing to flag, and a list is dear to make.
        case
            when (mean_text is null) = (mean_ns is null)
                and (best_text is null) = (min_ns is null)
                and (worst_text is null) = (max_ns is null)
                and (std_text is null) = (std_ns is null)
                and (runs_text is null) = (sample_count is null)
                and (score is null) = (score_s is null)
                and contradicted is not true
                and outside is not true then []
            else
                list_filter(
                    [
                        figure_flag('mean', stated_mean, mean_ns is not null),
                        figure_flag('best', stated_best, min_ns is not null),
                        figure_flag('worst', stated_worst, max_ns is not null),
                        figure_flag('std', stated_std, std_ns is not null),
                        figure_flag('runs', stated_runs, sample_count is not null),
                        figure_flag(
                            case family when 'aggregate' then 'score' else 'run_score' end, score, score_s is not null
                        ),
                        case when outside then 'MEAN_OUTSIDE_RANGE' end,
                        case when contradicted then 'SCORE_MISMATCH' end,
                        unreadable_flag('mean', mean_text, stated_mean),
                        unreadable_flag('best', best_text, stated_best),
                        unreadable_flag('worst', worst_text, stated_worst),
                        unreadable_flag('std', std_text, stated_std),
                        unreadable_flag('runs', runs_text, stated_runs)
                    ],
                    lambda flag: flag is not null
                )
        end as flags
    from measured
)

select
    'gpumode-kernelbot:submission/' || submission_id || '/' || run_key || coalesce('/benchmark/' || case_index, '')
        as run_id,
    'gpumode-kernelbot' as source,
    'gpumode-kernelbot:' || submission_id as submission_key,
    board as problem,
    mode,
    case
        when upstream_status = 'hacked' then 'revoked'
        when passed then 'passed'
        when not compiled then 'compile_error'
        when upstream_status in ('timeout', 'timed_out') then 'timeout'
        when upstream_status in ('compile_error', 'runtime_error', 'incorrect') then upstream_status
        when verdict = 'fail' then 'incorrect'
        when not ran then 'runtime_error'
        when not passed or upstream_status = 'failed' then 'failed'
        else 'unknown'
    end as status,
    label as runner,
    gpu,
    architecture,
    case_index,
    workload_digest,
    problem_digest,
    implementation_digest,
    protocol_digest,
    environment_digest,
    case
        when implementation_digest is null then null
        when source_known then 'final'
        else 'provisional'
    end as identity,
    case
        when family = 'aggregate' and score_s is not null then 'score'
        when family = 'per_case' and mean_ns is not null then 'latency'
    end as primary_metric,
    case primary_metric when 'score' then statistic when 'latency' then 'mean' end as primary_statistic,
    case primary_metric when 'score' then 's' when 'latency' then 'ns' end as primary_unit,
    case primary_metric when 'score' then score_s when 'latency' then nearest_integer(mean_ns) end as primary_value,
    sample_count,
    mean_ns,
    min_ns,
    max_ns,
    std_ns,
    '{' || concat_ws(
        ',',
        jcs_member('best_ns', jcs_number(min_ns)),
        jcs_member('leaderboard_score_s', jcs_number(score_s)),
        jcs_member('mean_ns', jcs_number(mean_ns))
    ) || '}' as native_metrics,
    coalesce(labels, '{}') as labels,
    coalesce(system, '{' || coalesce(jcs_member('runner', jcs_string(label)), '') || '}') as system,
    submission_id,
    null::varchar as version_label,
    correctness_key,
    coalesce(passed, false) and upstream_status is distinct from 'hacked' as passed,
    upstream_status is not distinct from 'hacked' as revoked,
    mode is not distinct from 'leaderboard' as leaderboard_mode,
    score_s,
    coalesce(case primary_metric when 'score' then score_s < 1e-7 when 'latency' then primary_value < 100 end, false)
        as below_floor,
    false as below_sol_bound,
    flags,
    'submission/' || submission_id
        || case when family = 'aggregate' then '/leaderboard' else coalesce('/benchmark/' || case_index, '') end
        as external_id,
    submitted_at as observed_at,
    file_digest as content_digest,
    locator,
    item::varchar as item
from flagged
