"""Options of requests: scope of lists and watches, deletion, patch types."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple


class Scope(NamedTuple):
    """The objects of a list or watch: one namespace or all, label selector, field selector."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> dict[str, str]:
        query = {}
        if self.label_selector:
            query["labelSelector"] = self.label_selector
        if self.field_selector:
            query["fieldSelector"] = self.field_selector
        return query


EVERYTHING: Final = Scope()


class PatchType(Enum):
    """The content type of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class DeleteOptions(NamedTuple):
    """Propagation policy, grace period and preconditions of a deletion."""

    uid: str = ""
    resource_version: str = ""
    grace_period_seconds: int | None = None
    propagation_policy: str = ""

    @property
    def names_one_object(self) -> bool:
        """Whether preconditions exclude a successor of the same name."""
        return bool(self.uid or self.resource_version)

    def as_json(self) -> dict[str, Any]:
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        preconditions = {}
        if self.uid:
            preconditions["uid"] = self.uid
        if self.resource_version:
            preconditions["resourceVersion"] = self.resource_version
        if preconditions:
            options["preconditions"] = preconditions
        if self.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_period_seconds
        if self.propagation_policy:
            options["propagationPolicy"] = self.propagation_policy
        return options


PLAIN_DELETE: Final = DeleteOptions()
