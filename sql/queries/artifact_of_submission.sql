select
    submissions.source_digest,
    submissions.source_bytes,
    submissions.file_name,
    artifacts.lines,
    artifacts.language,
    artifacts.media_type,
    coalesce(artifacts.license, 'unknown') as license,
    coalesce(artifacts.text_stored, false) as text_stored,
    artifacts.declared_leaderboard,
    artifacts.declared_gpus,
    families.family,
    families.size as family_size,
    families.first_author_key as family_first_author_key,
    families.first_submission_key as family_first_submission_key
from submissions
left join artifacts using (source_digest)
left join artifact_families as families using (source_digest)
where submissions.submission_key = $submission_key and submissions.source_digest is not null
