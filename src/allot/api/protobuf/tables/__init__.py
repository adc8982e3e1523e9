"""Protobuf messages of Kubernetes' API, one module per package; `schema` says how they are written."""
