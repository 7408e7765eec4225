-- The narrow columns of results that standings are made of.
select
    source,
    submission_key,
    problem,
    runner,
    native_metrics,
    version_label,
    passed,
    revoked,
    leaderboard_mode,
    score_s,
    observed_at
from results
