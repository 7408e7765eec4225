-- Families none of which is read now, as far as their texts are still there.
select source_digest, min(source_digest) over (partition by family) as family
from (
    select source_digest, family, count(*) over (partition by family) as size
    from kept_families
    semi join carried using (source_digest)
    anti join (
        select distinct kept_families.family from kept_families semi join source_rows using (source_digest)
    ) as anew using (family)
)
where size > 1
