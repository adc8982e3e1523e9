"""With real Kubernetes: programs in the directory that ALLOT_KUBERNETES names. Skipped where it names none."""
