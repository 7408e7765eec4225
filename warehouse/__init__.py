"""How tables are kept: contracts, identities, the raw store, the one way to write a file, snapshots."""
