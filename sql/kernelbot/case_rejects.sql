-- Cases that could not be normalised; the rest of their rows is kept.
with entries as (
    select board, item, file_digest, locator, unnest(cases, max_depth := 2) from kept_rows where len(refused_specs) > 0
)

select
    file_digest as content_digest,
    locator,
    item || '/benchmark/' || entries.index as item,
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
join workloads on workloads.board = entries.board and workloads.spec = coalesce(entries.spec, '')
where workloads.reason is not null
