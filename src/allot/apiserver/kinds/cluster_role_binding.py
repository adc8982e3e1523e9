"""ClusterRoleBindings. The API server treats them like RoleBindings."""

from __future__ import annotations

from allot.apiserver.kinds.role_binding import DEFINITION

__all__ = ["DEFINITION"]
