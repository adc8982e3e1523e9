"""A ClusterRole with an aggregation rule has the rules of all ClusterRoles that the rule selects."""

from __future__ import annotations

from typing import Any, Final

from allot.api.raw import RawObject
from allot.client.errors import ApiStatusError
from allot.client.resources import CLUSTER_ROLES
from allot.controllers.controller import ControllerContext, QueueController
from allot.validation.role_aggregation import aggregated_rules

ALL_ROLES: Final = "clusterroles"
"""The one key: any role may be part of any that collects."""


class ClusterRoleAggregationController(QueueController[str]):
    """Writes the rules of roles that collect those of others."""

    name = "clusterrole-aggregation-controller"
    queue_name = "ClusterRoleAggregator"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._roles = context.informers.informer(CLUSTER_ROLES)
        self._roles.add_handlers(
            on_add=lambda _: self.queue.add(ALL_ROLES),
            on_update=lambda *_: self.queue.add(ALL_ROLES),
            on_delete=lambda _: self.queue.add(ALL_ROLES),
        )

    async def reconcile(self, key: str) -> None:
        roles = self._roles.list()
        documents = [each.data for each in roles]
        for role in roles:
            if role.get("aggregationRule") is not None:
                rules = aggregated_rules(role.data, documents)
                if rules != role.get("rules", default=[]):
                    await self._write(role, rules)

    async def _write(self, role: RawObject, rules: list[dict[str, Any]]) -> None:
        try:
            await self.client.update(CLUSTER_ROLES, role.with_value(rules, "rules"))
        except ApiStatusError as error:
            if not error.is_not_found:
                raise
