"""The audit log: who did what, as far as a policy says, one JSON line for each stage of a request."""
