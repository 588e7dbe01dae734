"""Serve many queries from one join state, which changes while it runs."""
