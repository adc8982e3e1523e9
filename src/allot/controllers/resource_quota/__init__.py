"""Keeps the count of what is used of every ResourceQuota. What counts for how much is in `allot.quota`."""

from __future__ import annotations

from allot.controllers.resource_quota.controller import ResourceQuotaController

__all__ = ["ResourceQuotaController"]
