-- What goes by a name: runs by their own or upstream's id, submissions by key or number, problems by name or slug.
select 'run' as kind, run_id as id, run_digest as digest, source, problem as detail, true as exact
from runs
where run_id = $what or ($number is null and external_id = $what)
union all
select 'submission', submission_key, null, source, problem, true
from submissions
where submission_key = $what or submission_id = $number
union all
select 'problem', problem, problem_digest, source, title, problem = $what
from problems
where problem = $what or slug = $what
order by kind, source, id
