-- The rows of `file_rows` that count, with what is known of their files, boards and machines. `file_name` is what the row
-- that speaks for the submission says.
select
    file_rows.* exclude (file_name),
    decided.* exclude (precedence, item),
    file.family,
    file.locator,
    file.content_digest as file_digest,
    boards.problem_digest,
    boards.suite_digest,
    boards.statistic,
    boards.ranking_by,
    boards.correctness_key,
    boards.dtypes,
    boards.refused_specs,
    hardware.product,
    hardware.product as gpu,
    hardware.architecture,
    case when file.family = 'aggregate' then hardware.fleet_digest else hardware.product_digest end as environment_digest,
    protocols.protocol_digest,
    'python' as language
from file_rows
join decided using (precedence, item)
join file using (precedence)
join boards using (board)
left join hardware using (label)
left join protocols
    on protocols.statistic = case when file.family = 'aggregate' then boards.statistic else 'per case' end
