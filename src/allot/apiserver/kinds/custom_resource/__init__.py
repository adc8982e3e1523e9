"""Custom resources: kinds that CustomResourceDefinitions add to a server while it runs.

resources   the resources of a definition, one per version
strategy    the steps of a write, by the schema of the version
columns     printer columns
"""
