-- Every row of a file is kept, a duplicate or rejected.
select locator || ': ' || rows_read || ' rows read, but ' || rows_kept || ' kept, ' || rows_duplicate || ' duplicate and '
    || rows_rejected || ' rejected' as found
from source_files
where rows_read <> rows_kept + rows_duplicate + rows_rejected
