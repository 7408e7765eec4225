-- Submissions whose sources contradict each other, or a digest that was known, with the first file that shows it.
with read as (
    select submission_id, min(source_digest) as source_digest, count(distinct source_digest) as texts, min(locator) as locator
    from source_rows
    where source_digest is not null
    group by submission_id
)

select locator, 'submission ' || submission_id || ' has several sources, the one with the smallest digest counts' as detail
from read
where texts > 1
union all
select locator, 'submission ' || submission_id || ' has another source than was known, the one that was read counts'
from read
join known_sources using (submission_id)
where known_sources.source_digest <> read.source_digest
order by all
