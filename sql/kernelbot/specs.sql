-- The cases that one file's kept rows show, each once.
with entries as (
    select kept.board, unnest(file_rows.cases, max_depth := 2)
    from file_rows
    cross join file
    join kept on kept.precedence = file.precedence and kept.item = file_rows.item and kept.kept
)

select distinct board, coalesce(spec, '') as spec from entries
