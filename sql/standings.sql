-- Places as the platforms show them, over `results` and `submissions`. These are the platforms' rules, not a ranking
-- policy: a figure that no policy believes still has its place here, and a run on a board with cases counts by the
-- board's score.
with counted as (
    -- KernelBot: every case of a run carries the board's score of the whole run.
    select
        source,
        problem,
        runner,
        '' as stack_version,
        submission_key,
        min(score_s) as score_s,
        null::double as sol_score,
        null::double as latency_ms,
        min(score_s) as lower_is_better,
        'best-score-v1' as rule
    from results
    where source = 'gpumode-kernelbot' and passed and leaderboard_mode and runner is not null and score_s is not null
    group by source, problem, runner, submission_key
    union all
    -- SOL-ExecBench: the higher the SOL score the better; stacks are apart.
    select
        source,
        problem,
        runner,
        coalesce(version_label, 'unknown') as stack_version,
        submission_key,
        null as score_s,
        (native_metrics ->> '$.sol_score')::double as sol_score,
        (native_metrics ->> '$.latency_ms')::double as latency_ms,
        -sol_score as lower_is_better,
        'best-sol-score-v1' as rule
    from results
    where source = 'sol-execbench' and passed and leaderboard_mode and runner is not null and sol_score is not null
),

-- Of an author's equal results the earliest submission holds the place.
bests as (
    select
        counted.*,
        submissions.author_key,
        count(*) over (
            partition by counted.source, counted.problem, runner, stack_version, submissions.author_key
        ) as submissions
    from counted
    join submissions using (submission_key)
    where submissions.author_key is not null
    qualify row_number() over (
        partition by counted.source, counted.problem, runner, stack_version, submissions.author_key
        order by lower_is_better, submissions.submitted_at nulls last, submissions.submission_id
    ) = 1
)

select
    source,
    problem,
    runner,
    stack_version,
    author_key,
    rank() over (partition by source, problem, runner, stack_version order by lower_is_better) as position,
    submission_key,
    score_s,
    sol_score,
    latency_ms,
    submissions,
    rule
from bests
