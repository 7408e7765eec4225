-- Rows that name no board.
select file.locator, file_rows.* exclude (cases, precedence)
from file_rows
join file using (precedence)
join candidates using (precedence, item)
where candidates.board is null
order by precedence, item
