"""Every kubectl command, on our API server and on Kubernetes' own."""
