select
    catalogue_id('sources', source) as "id",
    source as "slug",
    'leaderboard' as "kind",
    name as "name",
    json_object(
        'license', license, 'attribution', attribution, 'url', url, 'terms', terms, 'freshnessDays', freshness_days
    ) as "policy",
    instant(created_at) as "createdAt"
from sources
cross join snapshot
order by source
