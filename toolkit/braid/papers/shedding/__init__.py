"""Load shedding inside joins: Gedik, Wu, Yu and Liu 2007."""
