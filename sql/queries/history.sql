select
    observed_at,
    value,
    unit,
    author,
    author_key,
    speedup,
    held_for_s,
    progress.run_id,
    run_digest,
    previous_value,
    previous_author,
    previous_run_id
from progress
left join run_lookup on run_lookup.run_id = progress.run_id
where comparison_key = $comparison_key and ($as_of is null or observed_at <= $as_of)
order by observed_at
