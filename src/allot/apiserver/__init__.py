"""The API server: HTTP to objects and back. So far the part that needs no network: strategies."""
