-- Drift of this ingest, first seen when the snapshot before says so.
select
    part_rows.source,
    part_rows.locator,
    part_rows.field,
    part_rows.kind,
    part_rows.detail,
    least(part_rows.first_seen_at, coalesce(previous_drift.first_seen_at, part_rows.first_seen_at)) as first_seen_at
from part_rows
left join previous_drift using (source, locator, field, kind, detail)
order by source, locator, field, kind, detail
