-- Of the runs that are shown.
protocol_digest in (select protocol_digest from all_runs where source in (from shown))
