-- Eligible runs for reading, under the snapshot's policy, in order of boards, cases and ranks. `gap` is the value divided by
-- the best of its board.
create or replace view leaderboard as
select
    ranks.rank,
    ranks.author_rank,
    runs.problem,
    runs.case_index as "case",
    runs.gpu,
    runs.runner,
    authors.project_name as author,
    runs.primary_value as value,
    runs.primary_unit as unit,
    ranks.gap_to_best as gap,
    runs.observed_at as observed,
    runs.run_id
from ranks
-- Both have the same key; of ranks, which are sorted by it, the others' are not read then.
join runs on runs.run_id = ranks.run_id and runs.comparison_key = ranks.comparison_key
left join submissions on submissions.submission_key = runs.submission_key
left join authors on authors.author_key = submissions.author_key
where ranks.policy = (select ranking_policy from snapshot)
order by
    runs.source, runs.problem, runs.case_index nulls first, runs.gpu, runs.runner, runs.comparison_key, ranks.rank, runs.run_id;
