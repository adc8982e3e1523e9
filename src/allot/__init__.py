"""Kubernetes Dynamic Resource Allocation in Python."""

__version__ = "0.1.0"
