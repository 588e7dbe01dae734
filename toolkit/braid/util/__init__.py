"""Helpers that are independent of joins: files, threads, time, validation, JSON."""
