from snapshot
