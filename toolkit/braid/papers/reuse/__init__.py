"""Share operators between similar queries on a network. Source: Seshadri et al. 2008."""
