"""Types every object shares: metadata, owners, conditions, node selectors."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import field

from allot.api.base import ApiObject, GoName, Int64, Time, always
from allot.api.identities import ObjectKey

Uid = Annotated[str, GoName("types.UID")]
ConditionStatus = Annotated[str, GoName("v1.ConditionStatus")]
NodeSelectorOperator = Annotated[str, GoName("v1.NodeSelectorOperator")]


class OwnerReference(ApiObject, frozen=True):
    """An owner of this object; garbage collection deletes the object with its last owner."""

    api_version: str = always(str)
    kind: str = always(str)
    name: str = always(str)
    uid: Uid = always(str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


_new_tuple: Final = tuple.__new__
"""Makes a named tuple without the function that its class has for that: keys are made for every event."""


class ObjectMeta(ApiObject, frozen=True):
    """The metadata of any object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: Uid = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[dict[str, Any], ...] = ()

    @property
    def key(self) -> ObjectKey:
        return _new_tuple(ObjectKey, (self.namespace, self.name))


class KubernetesObject(ApiObject, frozen=True):
    """An object with metadata: the base of every typed kind."""

    metadata: ObjectMeta = always(ObjectMeta)

    @property
    def key(self) -> ObjectKey:
        metadata = self.metadata
        return _new_tuple(ObjectKey, (metadata.namespace, metadata.name))


class Condition(ApiObject, frozen=True):
    """One aspect of an object's state, as last observed."""

    type: str = always(str)
    status: ConditionStatus = always(str)
    observed_generation: Int64 = 0
    last_transition_time: Time | None = always(lambda: None)
    reason: str = always(str)
    message: str = always(str)


class NodeSelectorRequirement(ApiObject, frozen=True):
    """A label or field of a node, an operator, and the values it applies to."""

    key: str = always(str)
    operator: NodeSelectorOperator = always(str)
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiObject, frozen=True):
    """Requirements that must all hold. A term without any selects nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiObject, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()
