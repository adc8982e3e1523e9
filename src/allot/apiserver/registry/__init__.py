"""The registry: reads and writes of stored objects of all kinds, the write pipeline, patches."""
