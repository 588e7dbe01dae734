"""Streams as a join reads them: Spark streams, Arrow tables, and their fingerprints."""
