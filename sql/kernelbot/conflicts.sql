-- Copies of one run that differ, and rows that only a file has from which their board is not taken.
select
    precedence,
    'submission ' || submission_id || ', ' || run_key || case
        when differs then ': copies differ, one is kept'
        else ': board ' || left(board, 100) || ' is taken from another file, which lacks this run'
    end as detail
from kept
where differs or untaken
order by all
