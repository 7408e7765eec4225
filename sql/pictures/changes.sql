-- What a reader would want to hear of the night: records first, then who is new or gone, then who moved, far places last.
select
    movements.kind,
    coalesce(runs.problem, cohorts.problems[1]) as problem,
    runs.case_index,
    cohorts.gpu,
    authors.project_name as author,
    movements.rank_before,
    movements.rank_after,
    movements.value_before,
    movements.value_after,
    cohorts.unit
from movements
left join cohorts using (comparison_key)
left join runs using (run_id)
left join submissions using (submission_key)
left join authors using (author_key)
order by
    list_position(['record', 'entered', 'changed', 'withdrawn', 'left', 'rose', 'fell'], movements.kind),
    coalesce(movements.rank_after, movements.rank_before),
    movements.value_after / movements.value_before nulls last,
    problem,
    movements.comparison_key,
    movements.run_id
limit $changes
