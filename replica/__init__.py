"""A small local copy of the upstream services, and the seeded corpus that they serve."""
