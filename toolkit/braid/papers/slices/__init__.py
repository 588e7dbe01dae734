"""Chains and shared rings of state slices for many queries. Source: Wang 2008, Parts I and III."""
