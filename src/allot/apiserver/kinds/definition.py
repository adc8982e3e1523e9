"""What can be special about a kind. The defaults are those of a kind that needs nothing special."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersionKind
from allot.api.kinds import Kind
from allot.apiserver.defaults.filling import Step
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.strategy import Strategy
from allot.apiserver.printers.column import NAME_AND_AGE, Table
from allot.features import FeatureGates

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS: Final = ("get", "patch", "update")


class Subresource(NamedTuple):
    """A part of an object with a path of its own. Without a `kind`, the whole object is sent."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: GroupVersionKind | None = None


STATUS: Final = Subresource("status")
SCALE: Final = Subresource("scale", kind=GroupVersionKind("autoscaling", "v1", "Scale"))
BINDING_KIND: Final = GroupVersionKind("", "v1", "Binding")
BINDING: Final = Subresource("binding", ("create",), BINDING_KIND)
EVICTION: Final = Subresource("eviction", ("create",), GroupVersionKind("policy", "v1", "Eviction"))
TOKEN: Final = Subresource(
    "token", ("create",), GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
)
_POD: Final = GroupVersionKind("", "v1", "Pod")
LOG: Final = Subresource("log", ("get",), _POD)
CONNECTIONS: Final = tuple(
    Subresource(name, ("create", "get"), GroupVersionKind("", "v1", kind))
    for name, kind in (
        ("attach", "PodAttachOptions"),
        ("exec", "PodExecOptions"),
        ("portforward", "PodPortForwardOptions"),
    )
)
"""Connections to a container's process."""
PROXY_VERBS: Final = ("create", "delete", "get", "patch", "update")
POD_PROXY, SERVICE_PROXY, NODE_PROXY = (
    Subresource("proxy", PROXY_VERBS, GroupVersionKind("", "v1", f"{kind}ProxyOptions"))
    for kind in ("Pod", "Service", "Node")
)
"""Requests to the HTTP server of a pod, of a service's pods, or of a kubelet."""
PROXIES: Final = (POD_PROXY, SERVICE_PROXY, NODE_PROXY)
EPHEMERAL_CONTAINERS: Final = Subresource("ephemeralcontainers")
RESIZE: Final = Subresource("resize")
APPROVAL: Final = Subresource("approval")
FINALIZE: Final = Subresource("finalize", ("update",))


def _unchanged(data: dict[str, Any]) -> dict[str, Any]:
    return data


def _always(_: FeatureGates) -> bool:
    return True


def _no_fields(_version: str, _gates: FeatureGates) -> Collection[str]:
    return ()


def _in_all_versions(_version: str, _gates: FeatureGates) -> bool:
    return True


class KindDefinition(NamedTuple):
    """How the API server serves a kind, beyond its row in the table of kinds."""

    strategy: Callable[[Kind], Strategy[Any]] = partial(RawStrategy, KindRules())
    """Prepares and validates writes."""
    defaults: Step = _unchanged
    """Fills in missing fields of a raw kind's documents. Typed kinds are defaulted by the scheme."""
    table: Table = NAME_AND_AGE
    """The columns of `kubectl get`."""
    subresources: tuple[Subresource, ...] = ()
    selectable_fields: Mapping[str, str] = {}
    """Field selectors beyond name and namespace, and the path that each of them reads."""
    verbs: tuple[str, ...] = VERBS
    is_created_by_update: bool = False
    """Whether a PUT creates an object that does not exist, instead of 404."""
    returns_deleted_in: tuple[str, ...] = ()
    """The versions in which a delete is answered with the deleted object instead of a Status."""
    cache_index: Callable[[bytes], Hashable] | None = None
    """The value by which the watch cache indexes objects, read from their stored JSON."""
    schema: str = ""
    """The types of a raw kind, in the form of `schemas/tables`, if they are not in one of its files.

    Without any, `spec` and `status` are free-form.
    """
    is_served: Callable[[FeatureGates], bool] = _always
    serves_version: Callable[[str, FeatureGates], bool] = _in_all_versions
    has_short_names: Callable[[str, FeatureGates], bool] = _in_all_versions
    """Whether discovery lists the short names in a version."""
    hidden_fields: Callable[[str, FeatureGates], Collection[str]] = _no_fields
    """Fields of a version that OpenAPI does not show, as `Type.field`."""
    without_effect: str = ""
    """What is missing for objects of the kind to have an effect; clients are warned about it."""
    plain_tables: tuple[str, ...] = ()
    """Subresources of which `kubectl get` shows name and age only."""
