-- One row a case of a per-case row, one row for any other. `shown` are the rows of all files.
create table floor_runs as
select
    'submission/' || submission_id || '/run/' || row_id || coalesce('/benchmark/' || entry.index, '') as run_id,
    submission_id,
    board,
    runner,
    mode,
    passed,
    observed_at,
    coalesce(board || '/' || runner || '/' || entry.index, board || '/' || runner) as cohort,
    coalesce(try_cast(entry.mean as double), score) as value,
    try_cast(entry.best as double) as best,
    try_cast(entry.worst as double) as worst,
    try_cast(entry.std as double) as std,
    try_cast(entry.runs as bigint) as samples
from (select *, unnest(case when len(cases) > 0 then cases else [null] end) as entry from shown);

-- At least 1,000 bytes a run and 600 an implementation.
create table floor_digests as
select floor_runs.*, sha256(rpad(run_id || '/' || coalesce(value, 0), 1000, '.')) as run_digest, implementation_digest
from floor_runs
join (
    select submission_id, runner, sha256(rpad(submission_id || '/' || runner, 600, '.')) as implementation_digest
    from floor_runs
    group by submission_id, runner
) using (submission_id, runner);

create table floor_ranks as
select run_id, cohort, dense_rank() over (partition by cohort order by value) as rank
from floor_digests
where passed and mode = 'leaderboard' and value > 0;

copy (from floor_digests order by cohort, value, run_id) to '$out/runs.parquet' (format parquet, compression zstd);
copy (from floor_ranks order by cohort, rank, run_id) to '$out/ranks.parquet' (format parquet, compression zstd);

attach '$out/floor.duckdb' as kept;
create table kept.runs as from floor_digests;
create table kept.ranks as from floor_ranks;
checkpoint kept;
detach kept;
