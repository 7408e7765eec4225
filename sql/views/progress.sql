-- The fall of each cohort's best as a series to plot, with names and dates.
create or replace view progress as
select
    runs.source,
    runs.problem,
    runs.case_index,
    runs.gpu,
    runs.runner,
    records.observed_at,
    records.value,
    runs.primary_unit as unit,
    authors.project_name as author,
    records.run_id,
    records.previous_value,
    previous_authors.project_name as previous_author,
    records.previous_run_id,
    -- 2 where the new best is twice as fast as the one before.
    records.previous_value / records.value as speedup,
    records.held_for_s,
    submissions.author_key,
    records.comparison_key
from records
join runs on runs.run_id = records.run_id
left join submissions on submissions.submission_key = runs.submission_key
left join authors on authors.author_key = submissions.author_key
left join runs as previous_runs on previous_runs.run_id = records.previous_run_id
left join submissions as previous_submissions on previous_submissions.submission_key = previous_runs.submission_key
left join authors as previous_authors on previous_authors.author_key = previous_submissions.author_key
order by
    runs.source, runs.problem, runs.case_index nulls first, runs.gpu, records.comparison_key, records.observed_at;
