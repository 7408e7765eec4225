-- The rows that count, with all that is worked out over several files about each. A file's rows lie together.
select
    kept.precedence,
    kept.item,
    kept.board,
    kept.run_key,
    speakers.item is not null as speaks,
    speakers.score_s as submission_score_s,
    implementers.item is not null as implements,
    representatives.file_name,
    representatives.source_digest,
    representatives.source_bytes,
    representatives.source_known
from kept
join representatives using (submission_id)
left join speakers using (precedence, item)
left join implementers using (precedence, item)
where kept.kept
order by kept.precedence, kept.item
