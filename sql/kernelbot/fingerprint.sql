-- For each file one number for all that its tables depend on besides its own rows; the order of rows plays no part.
select
    precedence,
    bit_xor(
        md5_number(
            concat_ws(
                chr(31), item, board, run_key, speaks, submission_score_s, implements, file_name, source_digest, source_bytes,
                source_known
            )
        )
    )::varchar as fingerprint
from decided
group by precedence
