-- How many movements there are of each kind.
select kind, count(*) as movements from movements group by kind
