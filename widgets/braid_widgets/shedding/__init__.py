"""Load shedding inside joins: Gedik 2007."""
