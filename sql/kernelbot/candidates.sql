-- What tells one run from another, and what decides between its copies. `file_rows` are typed rows, `file` describes their
-- files, `board_names` maps the platform's ids to names.
select
    file_rows.precedence,
    file.family,
    file_rows.item,
    file_rows.submission_id,
    coalesce(problem_name, board_names.name, 'board-' || file_rows.leaderboard_id) as board,
    case
        when file.family = 'aggregate' then 'leaderboard' || coalesce('/' || label, '')
        else 'run/' || coalesce(upstream_run_id, coalesce(mode, 'unknown') || '-' || left(content, 12))
    end as run_key,
    label,
    case
        when mode = 'leaderboard' and passed and upstream_status is distinct from 'hacked' and usable_figure(score)
            then score
    end as leaderboard_score_s,
    mode,
    file_rows.leaderboard_id,
    upstream_status,
    submitted_at,
    passed,
    score,
    case
        when file.family = 'aggregate' then
            '{' || concat_ws(
                ',',
                jcs_member('mode', jcs_string(mode)),
                jcs_member('passed', passed::varchar),
                jcs_member('score', jcs_number(score)),
                jcs_member('status', jcs_string(upstream_status))
            ) || '}'
        else content
    end as content,
    -- Only told apart where copies of one run stand in one file.
    md5_number(
        concat_ws(
            chr(31), file_rows.leaderboard_id, problem_name, user_id, user_name, code_id, file_name, submitted_at, mode, label
        )
    ) as surroundings
from file_rows
join file using (precedence)
left join board_names on board_names.leaderboard_id = file_rows.leaderboard_id
