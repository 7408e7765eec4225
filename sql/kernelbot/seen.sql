-- Labels, modes and statuses of all rows, with the first file that has each.
select field, value, min(precedence) as precedence
from (
    select precedence, case family when 'aggregate' then 'runner' else 'run_system_info.gpu' end as field, label as value
    from candidates
    union all
    select precedence, 'mode' as field, split_part(mode, '.', 1) as value from candidates
    union all
    select precedence, 'status' as field, upstream_status as value from candidates
)
where value is not null
group by field, value
order by field, value
