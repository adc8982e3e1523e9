"""ClusterRoles. The API server treats them like Roles."""

from __future__ import annotations

from allot.apiserver.kinds.role import DEFINITION

__all__ = ["DEFINITION"]
