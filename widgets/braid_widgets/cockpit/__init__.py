"""One view for every run: what is going on, what lives where, what was decided, and why."""
