"""Views of shared chains and rings: Wang 2008, Parts I and III."""
