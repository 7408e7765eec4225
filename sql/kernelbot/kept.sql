-- Every row that is of a board: whether it is kept, differs from the copy that is, or is kept though its board is taken
-- from another file.
with taken as (
    select board, min(precedence) as taken_precedence
    from candidates
    where board is not null and family = 'per_case'
    group by board
)

select
    candidates.precedence,
    candidates.item,
    candidates.submission_id,
    candidates.board,
    candidates.run_key,
    coalesce(copies.copy, 1) = 1 as kept,
    coalesce(copies.copy, 1) > 1 and copies.differs as differs,
    coalesce(copies.copy, 1) = 1
        and candidates.family = 'per_case'
        and candidates.precedence <> taken.taken_precedence as untaken
from candidates
left join copies using (precedence, item)
left join taken using (board)
where candidates.board is not null
