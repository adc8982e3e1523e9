"""Rules about objects that the API server accepts: each checks one object, given all known objects.

A check is a function `(subject, known, gates) -> problems`. `CHECKS` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from allot.features import FeatureGates
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.rules import (
    alternatives,
    capacity,
    constraints,
    drivers,
    pools,
    references,
    request_policies,
    selectors,
    versions,
)
from allot.lint.subjects import LintSubject

Check = Callable[[LintSubject, KnownObjects, FeatureGates], Iterator[Problem]]

CHECKS: Final[tuple[Check, ...]] = (
    versions.old_version,
    versions.admin_namespace,
    references.missing_classes,
    references.missing_claims,
    references.missing_requests,
    drivers.unknown_drivers,
    selectors.unknown_attributes,
    selectors.class_selectors,
    selectors.request_selectors,
    selectors.derivations,
    selectors.unknown_taints,
    alternatives.too_many_devices,
    alternatives.not_enough_devices,
    alternatives.unreachable_alternatives,
    constraints.match_and_distinct,
    constraints.contradicting_constraints,
    constraints.compared_values,
    capacity.capacity_names,
    capacity.capacity_amounts,
    capacity.capacity_rounding,
    request_policies.slice_capacities,
    pools.pool_contradictions,
)
