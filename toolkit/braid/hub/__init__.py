"""Many queries, as text, on few joins: they come and go while streams run (Seshadri 2008)."""
