-- Each source where it is first: the file's place and the row.
select source_digest, first.place as place, first.item as item
from (
    select source_digest, min({place: place, item: item}) as first
    from source_rows
    where source_digest is not null
    group by source_digest
)
