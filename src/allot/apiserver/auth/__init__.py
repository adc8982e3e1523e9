"""Authentication, authorization, credentials and service account tokens."""
