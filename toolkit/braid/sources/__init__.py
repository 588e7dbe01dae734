"""Streams as a join reads them: Spark's streams, Arrow tables, their fingerprints."""
