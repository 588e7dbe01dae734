"""Notebooks run as reports."""
