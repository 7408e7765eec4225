select
    problems.*,
    sources.name as source_name,
    sources.url as source_url,
    sources.license as source_license,
    sources.attribution as source_attribution,
    sources.terms as source_terms,
    (select count(*) from submissions where source = $source and problem = $problem) as submissions,
    (select count(*) from runs where source = $source and problem = $problem) as runs,
    (select count(*) from runs where source = $source and problem = $problem and eligible) as eligible_runs
from problems
join sources using (source)
where problems.source = $source and problems.problem = $problem
