-- The machines that a submission ran on.
select
    gpu,
    runner,
    architecture,
    count(*) as runs,
    count(*) filter (where eligible) as ranked_runs
from runs
where submission_key = $submission_key and gpu is not null
group by gpu, runner, architecture
order by gpu, runner
