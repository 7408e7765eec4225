-- The first row of each implementation: a submission on one board and GPU.
select first.precedence as precedence, first.item as item
from (
    select min({precedence: candidates.precedence, item: candidates.item}) as first
    from candidates
    join kept using (precedence, item)
    join hardware using (label)
    where kept.kept
    group by candidates.submission_id, candidates.board, hardware.product, hardware.architecture
)
