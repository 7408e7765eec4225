-- The rows that count, with whether they speak for a submission or an implementation.
select
    kept.precedence,
    kept.item,
    kept.submission_id,
    kept.board,
    kept.run_key,
    speakers.item is not null as speaks,
    speakers.score_s as submission_score_s,
    implementers.item is not null as implements
from kept
left join speakers using (precedence, item)
left join implementers using (precedence, item)
where kept.kept
