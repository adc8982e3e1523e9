"""Usage of ResourceQuotas, for the admission plugin that enforces them and the controller that counts.

evaluators.py  per resource: which entries of a quota it counts towards, how much, and in which scopes
pods.py        usage of a pod
claims.py      usage of a ResourceClaim
decisions.py   whether a write fits, and the usage after it; the full recount
"""

from __future__ import annotations
