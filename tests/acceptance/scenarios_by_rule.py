"""The scenarios of Kubernetes v1.38 that end otherwise on `allot up`: under the rules of the KEPs, by the rule, and
because of its shape.
"""

from __future__ import annotations

from typing import Final

from allot.rules import (
    AVOID_FAILED_DEVICES,
    COUNT_LISTED_DEVICES_ONCE,
    CROSS_SLICE_VALIDATION,
    KEP_FIELDS_IN_V1ALPHA3,
    MATCH_OR_DISTINCT,
    ONE_KIND_OF_BINDING_CONDITIONS,
    POOL_STATUS_NOT_SERVED_WHEN_OFF,
    SKIP_MISSING_CLASSES,
    UNKNOWN_DRIVER_WARNING,
)

OTHERWISE_BY_RULE: Final = {
    ONE_KIND_OF_BINDING_CONDITIONS: ("bind-validation",),
    KEP_FIELDS_IN_V1ALPHA3: ("kubectl-api-resources",),
}
FURTHER_OTHERWISE_BY_RULE: Final = {
    AVOID_FAILED_DEVICES: ("more-bind-failure-beats-ready",),
    COUNT_LISTED_DEVICES_ONCE: ("more-pool-claims-of-gone-devices",),
    CROSS_SLICE_VALIDATION: ("more-pool-partition-errors",),
    MATCH_OR_DISTINCT: ("more-cap-claim-leniency",),
    ONE_KIND_OF_BINDING_CONDITIONS: ("more-bind-validation",),
    SKIP_MISSING_CLASSES: ("more-class-of-alternative-missing",),
    UNKNOWN_DRIVER_WARNING: ("more-pool-pool-name-no-match",),
}
"""Those of our own."""
OFF_OTHERWISE_BY_RULE: Final = {POOL_STATUS_NOT_SERVED_WHEN_OFF: ("off-pool",)}
"""Those of our own that switch gates off."""
TWO_WRITES: Final = ("more-claim-events-order",)
"""They see the scheduler's finalizer before its allocation, which are one write where it is linked to the API server."""
