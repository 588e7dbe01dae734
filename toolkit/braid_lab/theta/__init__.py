"""Study adaptive theta joins (Elseidy 2014)."""
