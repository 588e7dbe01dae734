"""Views of stream reuse (Seshadri 2008): the network, and what flows on it."""
