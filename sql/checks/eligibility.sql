-- A run is eligible exactly when nothing speaks against it and it has a document.
select run_id || ': eligible is ' || eligible || ' with reasons ' || ineligible_reasons::varchar as found
from runs
where eligible <> (len(ineligible_reasons) = 0)
    or (eligible and (run_digest is null or comparison_key is null))
    or (run_digest is null) <> (comparison_key is null)
