"""Many queries, one join state: what they share, and how it changes while they run."""
