"""The scenarios that do not pass yet, by what they wait for."""

from __future__ import annotations

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
