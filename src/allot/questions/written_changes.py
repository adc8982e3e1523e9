"""Changes as a person writes them: `deployment/web=10`, `node/a:NoSchedule`, `pod/web`."""

from __future__ import annotations

import re
from typing import Any, Final

from allot.api.identities import DeviceId, ObjectKey
from allot.api.resource import NO_EXECUTE
from allot.api.similar_names import did_you_mean, similar_names
from allot.client import resources
from allot.client.resources import RESOURCES, Resource
from allot.questions.changes import (
    EFFECTS,
    Change,
    ChangeError,
    DrainNode,
    EvictPod,
    RemoveObject,
    ScaleWorkload,
    TaintDevices,
    TaintNode,
)
from allot.questions.workload_model import BY_KIND

_WITH_EFFECT: Final = re.compile(
    rf"(?P<what>.+?)(?::(?P<effect>{'|'.join(EFFECTS)}))?", re.DOTALL
).fullmatch

_NAMES: Final[dict[str, Resource[Any]]] = {
    name: resource
    for resource in reversed(RESOURCES)
    for name in (resource.kind.lower(), resource.plural)
} | {
    "claim": resources.RESOURCE_CLAIMS,
    "claims": resources.RESOURCE_CLAIMS,
    "deploy": resources.DEPLOYMENTS,
    "rs": resources.REPLICA_SETS,
    "sts": resources.STATEFUL_SETS,
    "ds": resources.DAEMON_SETS,
    "po": resources.PODS,
    "no": resources.NODES,
    "slice": resources.RESOURCE_SLICES,
}


def read_reference(text: str, namespace: str) -> tuple[Resource[Any], ObjectKey]:
    """`kind/NAME` or `kind/NAMESPACE/NAME`; `ChangeError`."""
    kind, _, rest = text.partition("/")
    resource = _NAMES.get(kind.lower())
    if resource is None or not rest:
        hint = did_you_mean(similar_names(kind.lower(), _NAMES)) if resource is None else ""
        raise ChangeError(f"{text}: expected kind/NAME, such as pod/web{hint}")
    space, _, name = rest.rpartition("/")
    return resource, ObjectKey((space or namespace) if resource.namespaced else "", name)


def read_change(kind: str, text: str, namespace: str) -> Change:
    """A change by the word for it: drain, taint, scale, remove or evict; `ChangeError` for any other."""
    match kind:
        case "drain":
            return DrainNode(f"drain {text}", text.removeprefix("node/"))
        case "taint":
            return read_taint(text)
        case "scale":
            return read_scale(text, namespace)
        case "remove":
            return read_removal(text, namespace)
        case "evict":
            return read_eviction(text, namespace)
    raise ChangeError(f"{kind[:40]}: not a change")


def read_scale(text: str, namespace: str) -> ScaleWorkload:
    """`deployment/NAME=N`."""
    reference, _, number = text.rpartition("=")
    if not reference or not number.isdecimal():
        raise ChangeError(f"{text}: expected kind/NAME=N, such as deployment/web=10")
    resource, key = read_reference(reference, namespace)
    if resource.kind not in BY_KIND or resource is resources.DAEMON_SETS:
        raise ChangeError(f"{text}: a {resource.kind} cannot be scaled")
    return ScaleWorkload(f"scale {text}", resource, key, int(number))


def read_taint(text: str) -> TaintNode | TaintDevices:
    """`node/NAME[:EFFECT]`, `device/DRIVER/POOL/DEVICE[:EFFECT]` or `EXPRESSION[:EFFECT]`."""
    found = _WITH_EFFECT(text)
    assert found is not None
    what, effect = found["what"], found["effect"] or NO_EXECUTE
    shown = f"taint {text}"
    if what.startswith("node/"):
        return TaintNode(shown, what.removeprefix("node/"), effect)
    if what.startswith("device/"):
        parts = what.removeprefix("device/").split("/")
        if len(parts) != 3 or not all(parts):
            raise ChangeError(f"{text}: expected device/DRIVER/POOL/DEVICE")
        return TaintDevices(shown, device=DeviceId(*parts), effect=effect)
    return TaintDevices(shown, what, effect=effect)


def read_removal(text: str, namespace: str) -> RemoveObject:
    resource, key = read_reference(text, namespace)
    return RemoveObject(f"remove {text}", resource, key)


def read_eviction(text: str, namespace: str) -> EvictPod:
    resource, key = read_reference(text, namespace)
    if resource is not resources.PODS:
        raise ChangeError(f"{text}: only pods can be evicted")
    return EvictPod(f"evict {text}", key)
