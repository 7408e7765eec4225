-- Every name under which a problem can be asked for.
select problem as name from problems union select slug from problems order by name
