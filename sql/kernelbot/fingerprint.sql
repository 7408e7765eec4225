-- One number for all that a file's tables depend on besides its own rows; the order of rows plays no part.
select
    coalesce(
        bit_xor(
            md5_number(
                concat_ws(
                    chr(31), kept.item, kept.board, kept.run_key, speakers.item = kept.item, speakers.score_s,
                    implementers.item, representatives.file_name, representatives.source_digest,
                    representatives.source_bytes
                )
            )
        ),
        0
    )::varchar as fingerprint
from kept
join file using (precedence)
join representatives using (submission_id)
left join speakers on speakers.precedence = kept.precedence and speakers.item = kept.item
left join implementers on implementers.precedence = kept.precedence and implementers.item = kept.item
where kept.kept
