"""What requests can be told: which objects, which state of them, how to delete, how to patch."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple


class Scope(NamedTuple):
    """Which objects of a resource: of one namespace or of all, and only those that match."""

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
    """How a patch is to be read."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class DeleteOptions(NamedTuple):
    """How something is deleted, and what must be true of it for that."""

    uid: str = ""
    resource_version: str = ""
    grace_period_seconds: int | None = None
    propagation_policy: str = ""

    @property
    def names_one_object(self) -> bool:
        """Whether only one particular object, not its successor of the same name, can be meant."""
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
