-- Movements between two snapshots with names, board by board, the first of each by kind. Who stands no more goes by the
-- names of the snapshot before: upstream may say less of a run since.
with described as (
    select
        movements.*,
        runs.source,
        runs.problem,
        runs.case_index,
        runs.gpu,
        runs.runner,
        protocols.version,
        runs.primary_unit as unit,
        authors.project_name as author,
        submissions.author_key,
        runs.submission_key,
        runs.run_digest
    from movements
    join runs using (run_id)
    join submissions using (submission_key)
    join protocols using (protocol_digest)
    left join authors using (author_key)
    where movements.rank_after is not null
    union all
    select
        movements.*,
        runs.source,
        runs.problem,
        runs.case_index,
        runs.gpu,
        runs.runner,
        protocols.version,
        runs.primary_unit,
        authors.project_name,
        submissions.author_key,
        runs.submission_key,
        runs.run_digest
    from movements
    join previous_runs as runs using (run_id)
    join previous_submissions as submissions using (submission_key)
    join previous_protocols as protocols using (protocol_digest)
    left join previous_authors as authors using (author_key)
    where movements.rank_after is null
),

numbered as (
    select
        *,
        row_number() over (
            board order by list_position($kinds, kind), coalesce(rank_after, rank_before), run_id
        ) as number,
        count(*) over board as movements_on_board
    from described
    window board as (partition by source, problem, case_index, gpu, runner, comparison_key)
)

select
    numbered.source,
    numbered.problem,
    numbered.case_index,
    numbered.gpu,
    numbered.runner,
    numbered.version,
    numbered.comparison_key,
    numbered.unit,
    previous_cohorts.best_value as best_before,
    cohorts.best_value as best_after,
    numbered.movements_on_board,
    numbered.kind,
    numbered.author,
    numbered.author_key,
    numbered.rank_before,
    numbered.rank_after,
    numbered.value_before,
    numbered.value_after,
    numbered.submission_key,
    numbered.run_id,
    numbered.run_digest
from numbered
left join cohorts using (comparison_key)
left join previous_cohorts using (comparison_key)
where $limit is null or number <= $limit
order by source, problem, case_index nulls first, gpu, runner, comparison_key, number
