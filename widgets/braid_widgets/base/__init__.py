"""Widgets, charts and helpers shared by the views of all papers."""
