-- The canonical document of a run, whose SHA-256 is its `run_digest`; null for a run without one. Inside, no column is called
-- `run_id`, or a caller's `manifest(run_id)` would mean that column and not the caller's.
create or replace macro manifest(id) as (
    select case when record.run_digest is not null then run_document(record) end
    from (select runs as record, runs.run_id as key_of_record from runs)
    where key_of_record = id
);
