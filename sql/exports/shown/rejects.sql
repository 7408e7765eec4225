-- Of the files that are shown.
exists (
    from all_source_files
    where all_source_files.content_digest = rejects.content_digest
        and all_source_files.locator = rejects.locator
        and all_source_files.source in (from shown)
)
