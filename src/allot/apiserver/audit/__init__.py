"""The audit log: requests as selected by a policy, one JSON line for each stage."""
