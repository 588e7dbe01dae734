"""Answer many textual queries on few joins that change while streams run (Seshadri 2008)."""
