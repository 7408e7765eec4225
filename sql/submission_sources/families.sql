-- Sources in families of two or more, each with who was first with any of the family.
with members as (
    select source_digest, family, count(*) over (partition by family) as size
    from placed
    where family is not null
),

submitted as (
    select
        members.family,
        submissions.submission_key,
        submissions.author_key,
        row_number() over (
            partition by members.family
            order by submissions.submitted_at nulls last, submissions.submission_id, submissions.submission_key
        ) as place
    from submissions
    join members using (source_digest)
)

select
    members.source_digest,
    members.family,
    members.size,
    submitted.author_key as first_author_key,
    submitted.submission_key as first_submission_key
from members
join submitted on submitted.family = members.family and submitted.place = 1
order by members.source_digest
