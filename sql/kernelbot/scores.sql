-- What each kept row says of its submission's place on its board.
select
    'gpumode-kernelbot' as source,
    'gpumode-kernelbot:' || submission_id as submission_key,
    board as problem,
    label as runner,
    '{}' as native_metrics,
    null::varchar as version_label,
    coalesce(passed, false) and upstream_status is distinct from 'hacked' as passed,
    upstream_status is not distinct from 'hacked' as revoked,
    mode is not distinct from 'leaderboard' as leaderboard_mode,
    case when usable_figure(score) then score end as score_s,
    submitted_at as observed_at
from kept_rows
