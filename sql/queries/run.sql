select run_record.*, snapshot.content_digest as snapshot_digest
from run_record
cross join snapshot
where run_id = $run_id
