select
    submissions.*,
    authors.author_name,
    authors.project_slug,
    authors.project_name,
    authors.stable as author_stable,
    problems.title as problem_title,
    problems.problem_digest,
    coalesce(artifacts.text_stored, false) as source_text_stored,
    sources.name as source_name,
    sources.url as source_url,
    sources.license as source_license,
    sources.attribution as source_attribution,
    sources.terms as source_terms
from submissions
join sources using (source)
left join authors using (author_key)
left join problems on problems.source = submissions.source and problems.problem = submissions.problem
left join artifacts using (source_digest)
where submission_key = $submission_key
