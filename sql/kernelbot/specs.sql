-- The cases that rows which count show, each once.
select distinct board, coalesce(entry.spec, '') as spec
from (
    select kept.board, unnest(file_rows.cases) as entry
    from file_rows
    join kept using (precedence, item)
    where kept.kept
)
order by board, spec
