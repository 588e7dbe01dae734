"""HotKeys on two streams with Zipf skew whose frequent values change: experiments and claims."""
