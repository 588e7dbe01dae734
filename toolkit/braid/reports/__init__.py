"""Notebooks as reports, and the console command."""
