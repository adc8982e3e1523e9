"""The scenarios that do not pass yet, by what they wait for, and those that show what the KEPs' rules change."""

from __future__ import annotations

from allot.rules import KEP_FIELDS_IN_V1ALPHA3, ONE_KIND_OF_BINDING_CONDITIONS

WAITING = {
    "server-side apply": (
        "api-server-side-apply",
        "kubectl-server-side-apply",
    ),
    "RBAC": (
        "api-rbac-roles",
        "kubectl-auth",
        "pool-rbac",
    ),
    "protobuf bodies": ("kubectl-create-imperative",),
}

OTHERWISE_BY_RULE = {
    ONE_KIND_OF_BINDING_CONDITIONS: ("bind-validation",),
    KEP_FIELDS_IN_V1ALPHA3: ("kubectl-api-resources",),
}
"""Scenarios of Kubernetes v1.38 that end otherwise under the rules of the KEPs, by the rule."""
