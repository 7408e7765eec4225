-- Rows of one file that name no board.
select file_rows.* exclude (cases)
from file_rows
cross join file
join candidates on candidates.precedence = file.precedence and candidates.item = file_rows.item
where candidates.board is null
order by file_rows.item
