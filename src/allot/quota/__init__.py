"""What objects count for in ResourceQuotas: for those who enforce them and those who keep the count.

counters.py   per resource: which entries of a quota it counts towards, how much, and in which scopes
pods.py       what a pod counts for
claims.py     what a ResourceClaim counts for
decisions.py  whether a write fits, and what is used then; the count from scratch
"""

from __future__ import annotations
