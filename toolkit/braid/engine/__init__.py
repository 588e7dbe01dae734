"""Runs plans: executors, tasks, files, commits."""
