-- Each source that is asked for where it is first: the file's place and the row. Both are one number here, since what is
-- found of so many groups may then be moved out of memory.
select source_digest, first // 1099511627776 as place, first % 1099511627776 as item
from (
    select source_digest, min(place * 1099511627776 + item) as first
    from asked_rows
    where source_digest is not null
    group by source_digest
)
