-- The first row of each implementation: a submission on one board and GPU. Where a row stands is one number here, since
-- what is found of so many groups may then be moved out of memory.
select first // 1099511627776 as precedence, first % 1099511627776 as item
from (
    select min(candidates.precedence * 1099511627776 + candidates.item) as first
    from candidates
    join kept using (precedence, item)
    join hardware using (label)
    where kept.kept
    group by candidates.submission_id, candidates.board, hardware.product, hardware.architecture
)
