"""When and how things run: Dagster definitions, resources and the command line."""
