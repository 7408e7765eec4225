-- Each of the chosen sources where it is first: the file's place and the row.
select source_digest, first.place as place, first.item as item
from (
    select source_digest, min({place: place, item: item}) as first
    from source_rows
    semi join chosen using (source_digest)
    group by source_digest
)
