"""Load shedding inside joins. Source: Gedik, Wu, Yu and Liu 2007."""
