"""Views of stream reuse: the network and its flows. Source: Seshadri 2008."""
