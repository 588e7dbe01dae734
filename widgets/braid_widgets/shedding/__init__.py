"""Views of load shedding inside joins. Source: Gedik 2007."""
