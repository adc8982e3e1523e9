"""Scores by devices beyond those of Kubernetes: pack, spread, least fragmentation, least stranded capacity. Off by default."""
