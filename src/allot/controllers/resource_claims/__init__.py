"""The ResourceClaim controller: claims come from templates, and are free again when their pods are done.

pods.py          what pods say about claims, and when a pod is done
templates.py     the claim that an entry of a pod gets                      (decisions)
decisions.py     what becomes of a claim when its consumers are done        (decisions)
making.py        creates claims and tells pods their names                  (writes)
reservations.py  keeps `status.reservedFor` true, frees and deletes claims  (writes)
controller.py    what happens to pods, claims and templates becomes work
memory.py, metrics.py, indexes.py
"""

from allot.controllers.resource_claims.controller import ResourceClaimController

__all__ = ["ResourceClaimController"]
