-- Made-up runs in cohorts of about 550, with ties, authors with a long tail, and one run in three not ranked.
create table runs as
select
    'run/' || i as run_id,
    'gpumode-kernelbot' as source,
    'gpumode-kernelbot:' || (i // 5) as submission_key,
    'board-' || (i % $cohorts) % 40 as problem,
    'sha256:' || sha256('problem' || (i % $cohorts) % 40) as problem_digest,
    'sha256:' || sha256('workload' || i % $cohorts) as workload_digest,
    'sha256:' || sha256('protocol') as protocol_digest,
    'sha256:' || sha256('environment' || i % 4) as environment_digest,
    'NVIDIA B200' as gpu,
    'B200' as runner,
    'sha256:' || sha256('cohort' || i % $cohorts) as comparison_key,
    'latency' as primary_metric,
    'mean' as primary_statistic,
    'ns' as primary_unit,
    100.0 + floor(1e6 / (1 + hash(i) % 1000)) as primary_value,
    hash(i * 7) % 3 > 0 as eligible,
    timestamptz '2025-01-01 00:00:00+00' + to_seconds((hash(i // 5) % 30000000)::bigint) as observed_at
from range($runs) as t(i);

create table submissions as
select
    'gpumode-kernelbot:' || i as submission_key,
    i as submission_id,
    'gpumode-kernelbot:user/' || floor(pow(hash(i * 3) % 10000 / 100.0, 2))::bigint as author_key,
    timestamptz '2025-01-01 00:00:00+00' + to_seconds((hash(i) % 30000000)::bigint) as submitted_at
from range($runs // 5 + 1) as t(i);

create table results as
select
    source,
    submission_key,
    problem,
    runner,
    null::varchar as version_label,
    eligible as passed,
    false as revoked,
    true as leaderboard_mode,
    primary_value / 1e9 as score_s,
    '{}' as native_metrics,
    observed_at
from runs;
