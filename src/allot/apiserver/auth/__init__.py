"""Authentication, authorization (`rbac/`, nodes), access reviews, credentials and service account tokens."""
