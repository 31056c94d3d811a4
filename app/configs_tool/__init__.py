"""What `lockstep configs` asks of a cluster: the flags, the values, and the cluster itself."""
