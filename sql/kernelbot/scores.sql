-- What each kept row says of its submission's place on its board.
select
    'gpumode-kernelbot' as source,
    'gpumode-kernelbot:' || file_rows.submission_id as submission_key,
    kept.board as problem,
    label as runner,
    '{}' as native_metrics,
    null::varchar as version_label,
    coalesce(passed, false) and upstream_status is distinct from 'hacked' as passed,
    upstream_status is not distinct from 'hacked' as revoked,
    mode is not distinct from 'leaderboard' as leaderboard_mode,
    case when usable_figure(score) then score end as score_s,
    submitted_at as observed_at
from file_rows
cross join file
join kept on kept.precedence = file.precedence and kept.item = file_rows.item and kept.kept
