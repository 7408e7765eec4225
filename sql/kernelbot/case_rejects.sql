-- Cases of one file that could not be normalised; the rest of their rows is kept.
with entries as (
    select kept.board, file_rows.item, unnest(file_rows.cases, max_depth := 2)
    from file_rows
    cross join file
    join kept on kept.precedence = file.precedence and kept.item = file_rows.item and kept.kept
)

select
    file.content_digest,
    file.locator,
    entries.item || '/benchmark/' || entries.index as item,
    workloads.reason,
    entries.board || ', case ' || entries.index || ': ' || workloads.detail as detail,
    '{' || concat_ws(
        ',',
        jcs_member('best', jcs_cut(best)),
        jcs_member('mean', jcs_cut(mean)),
        jcs_member('runs', jcs_cut(runs)),
        jcs_member('spec', jcs_cut(entries.spec)),
        jcs_member('std', jcs_cut(std)),
        jcs_member('worst', jcs_cut(worst))
    ) || '}' as raw
from entries
cross join file
join workloads on workloads.board = entries.board and workloads.spec = coalesce(entries.spec, '')
where workloads.reason is not null
