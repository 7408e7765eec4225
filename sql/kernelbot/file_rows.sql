-- The typed rows of some files, with the number of their file.
select all_rows.* exclude (filename), file.precedence
from all_rows
join file on file.path = all_rows.filename
