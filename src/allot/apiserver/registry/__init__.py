"""Objects of all kinds: storage, watch cache, reads, writes, patches, subresources."""
