"""Run notebooks as reports."""
