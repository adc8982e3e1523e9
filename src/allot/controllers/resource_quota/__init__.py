"""Updates `status.used` of ResourceQuotas. `allot.quota` calculates the usage of objects."""

from __future__ import annotations

from allot.controllers.resource_quota.controller import ResourceQuotaController

__all__ = ["ResourceQuotaController"]
