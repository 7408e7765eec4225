-- Of the runs that are shown.
environment_digest in (select environment_digest from all_runs where source in (from shown))
