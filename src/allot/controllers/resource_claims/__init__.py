"""The ResourceClaim controller: creates claims from templates, and releases and deletes them after their pods.

pods.py            the claims of a pod, and when it no longer needs them
templates.py       the claim for an entry of `spec.resourceClaims`             (decisions)
decisions.py       what to do with a claim when its consumers are done         (decisions)
claim_creation.py  creates claims, and writes their names to the pod's status  (writes)
reservations.py    updates `status.reservedFor`, deallocates, deletes          (writes)
controller.py      event handlers and the control loop
mutation_cache.py, metrics.py, indexes.py
"""

from allot.controllers.resource_claims.controller import ResourceClaimController

__all__ = ["ResourceClaimController"]
