"""Helpers that know nothing of joins: files, threads, time, validation, JSON."""
