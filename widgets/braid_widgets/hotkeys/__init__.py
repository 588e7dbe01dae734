"""Views of frequent values that are shared out over hosts."""
