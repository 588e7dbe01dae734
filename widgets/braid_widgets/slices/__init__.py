"""Views of shared chains and rings. Source: Wang 2008, Parts I and III."""
