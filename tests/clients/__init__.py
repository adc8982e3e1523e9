"""Other people's clients, and what they send, against our API server."""
