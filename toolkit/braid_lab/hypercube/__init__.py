"""The hypercube beside routing in hops, while rates change: experiments and claims."""
