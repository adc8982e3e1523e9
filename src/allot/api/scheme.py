"""The scheme of the typed kinds: how each version is decoded, defaulted and converted to and from the hub.

The kinds and their versions are rows of `allot.api.kinds`. The hub is resource.k8s.io/v1 (for ResourcePoolStatusRequest, which has no v1, the union of its two
versions). Everything behind the API border works with hub objects only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from allot.api import defaults, kinds, v1alpha1, v1alpha3, v1beta1
from allot.api.base import replace
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.decoding import decode, to_builtin
from allot.api.identities import GroupVersionKind
from allot.api.kinds import Kind
from allot.api.meta import ObjectMeta
from allot.api.named_lists import with_named_lists
from allot.api.pool_status import ResourcePoolStatusRequest
from allot.api.protobuf.envelope import target_of
from allot.api.protobuf.reading import read
from allot.api.protobuf.writing import write
from allot.api.resource import GROUP
from allot.api.slices import ResourceSlice


class UnknownKindError(LookupError):
    """There is no such kind in this version."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        super().__init__(
            f'no kind "{gvk.kind}" is registered for version "{gvk.group_version}" in scheme '
            f'"pkg/api/legacyscheme/scheme.go:30"'
        )
        self.gvk = gvk


class Version(NamedTuple):
    """How one version of a kind is read and written."""

    cls: type[Struct]
    default: Callable[[Any, datetime], Any]
    to_hub: Callable[[Any], Any]
    from_hub: Callable[[Any], Any]
    kubernetes_cls: type[Struct] | None = None
    """What v1.38 knows of it, if that is less."""


def _same(hub_object: Any) -> Any:
    return hub_object


def _leave(versioned: Any, _: datetime) -> Any:
    return versioned


def _v1alpha1_request(request: v1alpha1.ResourcePoolStatusRequest) -> ResourcePoolStatusRequest:
    return defaults.default_pool_status_request(v1alpha1.request_to_hub(request))


def _v1alpha3_request(request: v1alpha3.ResourcePoolStatusRequest) -> ResourcePoolStatusRequest:
    return defaults.default_pool_status_request(v1alpha3.request_to_hub(request))


def _without_empty_lists(slice_: ResourceSlice) -> ResourceSlice:
    """Some empty lists matter to validation and allocation, but none is shown."""
    spec = slice_.spec
    devices = spec.devices or None
    if devices and any(device.binding_conditions == () for device in devices):
        devices = tuple(
            replace(device, binding_conditions=device.binding_conditions or None)
            for device in devices
        )
    if devices is spec.devices and spec.shared_counters != ():
        return slice_
    return replace(
        slice_,
        spec=replace(spec, devices=devices, shared_counters=spec.shared_counters or None),
    )


def _flat_slice(slice_: ResourceSlice) -> v1beta1.ResourceSlice:
    return v1beta1.slice_from_hub(_without_empty_lists(slice_))


_CLAIM = Version(ResourceClaim, defaults.default_claim, _same, _same)
_TEMPLATE = Version(ResourceClaimTemplate, defaults.default_template, _same, _same)
_SLICE = Version(ResourceSlice, defaults.default_slice, _same, _without_empty_lists)
_CLASS = Version(DeviceClass, defaults.default_class, _same, _same)
_TAINT_RULE = Version(DeviceTaintRule, defaults.default_taint_rule, _same, _same)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in kinds.KINDS if kind.is_typed}
"""The typed kinds by name: those of resource.k8s.io."""


def is_typed_group(group: str) -> bool:
    """Whether objects of an API group have types here. Those of other groups are JSON documents."""
    return group == GROUP


_VERSIONS: Final[Mapping[tuple[str, str], Version]] = {
    ("ResourceClaim", "v1"): _CLAIM,
    ("ResourceClaim", "v1beta2"): _CLAIM,
    ("ResourceClaim", "v1beta1"): Version(
        v1beta1.ResourceClaim,
        defaults.default_flat_claim,
        v1beta1.claim_to_hub,
        v1beta1.claim_from_hub,
    ),
    ("ResourceClaimTemplate", "v1"): _TEMPLATE,
    ("ResourceClaimTemplate", "v1beta2"): _TEMPLATE,
    ("ResourceClaimTemplate", "v1beta1"): Version(
        v1beta1.ResourceClaimTemplate,
        defaults.default_flat_template,
        v1beta1.template_to_hub,
        v1beta1.template_from_hub,
    ),
    ("ResourceSlice", "v1"): _SLICE,
    ("ResourceSlice", "v1beta2"): _SLICE,
    ("ResourceSlice", "v1beta1"): Version(
        v1beta1.ResourceSlice, defaults.default_flat_slice, v1beta1.slice_to_hub, _flat_slice
    ),
    ("DeviceClass", "v1"): _CLASS,
    ("DeviceClass", "v1beta2"): _CLASS,
    ("DeviceClass", "v1beta1"): _CLASS,
    ("DeviceTaintRule", "v1"): _TAINT_RULE,
    ("DeviceTaintRule", "v1beta2"): _TAINT_RULE,
    ("DeviceTaintRule", "v1alpha3"): _TAINT_RULE,
    ("ResourcePoolStatusRequest", "v1alpha3"): Version(
        v1alpha3.ResourcePoolStatusRequest,
        _leave,
        _v1alpha3_request,
        v1alpha3.request_from_hub,
        v1alpha3.KubernetesRequest,
    ),
    ("ResourcePoolStatusRequest", "v1alpha1"): Version(
        v1alpha1.ResourcePoolStatusRequest,
        _leave,
        _v1alpha1_request,
        v1alpha1.request_from_hub,
    ),
}
"""Versions with defaults of their own, or another type than the hub."""


@cache
def version_of(kind: Kind, version: str) -> Version:
    """How a version of a typed kind is read and written; `KeyError` if it is not served."""
    if version not in kind.versions or kind.hub is None:
        raise KeyError(version)
    return _VERSIONS.get((kind.name, version)) or Version(kind.hub, _leave, _same, _same)


@cache
def lookup(gvk: GroupVersionKind) -> tuple[Kind, Version]:
    """The kind and how this version of it is read; `UnknownKindError` if it is not registered."""
    kind = kinds.find_kind(gvk.group, gvk.kind)
    if kind is None or not kind.is_typed or gvk.version not in kind.versions:
        raise UnknownKindError(gvk)
    return kind, version_of(kind, gvk.version)


def decode_object(body: bytes, gvk: GroupVersionKind, now: datetime) -> Any:
    """The hub object in a request body, with the defaults of its version. May raise `DecodeError`."""
    kind, version = lookup(gvk)
    return _with_defaults(decode(body, version.cls, gvk.version), body, kind, version, now)


def decode_canonical(body: bytes, gvk: GroupVersionKind, now: datetime) -> tuple[Any, bool]:
    """The same, and whether the body is just what `encode_object` writes: then it has no unknown or duplicate fields."""
    kind, version = lookup(gvk)
    versioned = decode(body, version.cls, gvk.version)
    is_canonical = body.startswith(type_head(gvk)) and _with_head(_encoded(versioned), gvk) == body
    return _with_defaults(versioned, body, kind, version, now), is_canonical


def _with_defaults(versioned: Any, body: bytes, kind: Kind, version: Version, now: datetime) -> Any:
    """The hub object for what was decoded from `body`."""
    if kind.hub is ResourceClaimTemplate:
        versioned = with_named_lists(versioned, body)
    return version.to_hub(version.default(versioned, now))


def decode_protobuf(content: bytes, gvk: GroupVersionKind, now: datetime) -> Any:
    """The hub object in a protobuf message, with the defaults of its version. May raise `DecodeError`."""
    _, version = lookup(gvk)
    versioned = read(content, target_of(gvk, version.cls))
    return version.to_hub(version.default(versioned, now))


def encode_protobuf(hub_object: Any, gvk: GroupVersionKind) -> bytes:
    """The protobuf message for clients of this version."""
    _, version = lookup(gvk)
    return write(version.from_hub(hub_object), target_of(gvk, version.cls))


def to_version(hub_object: Any, gvk: GroupVersionKind) -> Any:
    """The object as clients of this version see it."""
    return lookup(gvk)[1].from_hub(hub_object)


_encoder: Final = msgspec.json.Encoder(enc_hook=to_builtin)


def encode_as(hub_object: Any, version: Version) -> bytes:
    """JSON for clients of a version, without its type."""
    return _encoded(version.from_hub(hub_object))


def encode_object(hub_object: Any, gvk: GroupVersionKind, *, type_meta: bool = True) -> bytes:
    """JSON for clients of this version."""
    body = _encoded(lookup(gvk)[1].from_hub(hub_object))
    return _with_head(body, gvk) if type_meta else body


def _encoded(versioned: Any) -> bytes:
    if _has_null_lists(versioned):
        return _encoder.encode(_with_null_lists(versioned))
    return _encoder.encode(versioned)


def _with_head(body: bytes, gvk: GroupVersionKind) -> bytes:
    """The object with its type in front."""
    return type_head(gvk) + (b"," if body != b"{}" else b"") + body[1:]


@cache
def type_head(gvk: GroupVersionKind) -> bytes:
    """How an object begins that is written here with its type."""
    return f'{{"kind":"{gvk.kind}","apiVersion":"{gvk.group_version}"'.encode()


def encode_parts(old: Any, new: Any, names: Collection[str], version: Version) -> bytes:
    """A JSON list of two hub objects with some of their top-level fields, for clients of a version that has these."""
    before, after = version.from_hub(old), version.from_hub(new)
    return _encoder.encode([_parts(before, names), _parts(after, names)])


def encode_metadata(old: ObjectMeta, new: ObjectMeta) -> bytes:
    """The same of two objects with nothing but their metadata, which is the same in all versions."""
    return _encoder.encode([{"metadata": old}, {"metadata": new}])


def _parts(versioned: Any, names: Collection[str]) -> dict[str, Any]:
    if _has_null_lists(versioned):
        plain = _with_null_lists(versioned)
        return {name: plain[name] for name in names if name in plain}
    return {name: getattr(versioned, name) for name in names}


def encode_hub(hub_object: Any) -> bytes:
    """JSON of everything the object says, whichever version it came in; without its type."""
    return _encoder.encode(hub_object)


# Go writes some empty lists as null instead of leaving them out. They are rare, so that only
# objects which have one take the slower way.


_CLAIMS: Final = (ResourceClaim, v1beta1.ResourceClaim)
_TEMPLATES: Final = (ResourceClaimTemplate, v1beta1.ResourceClaimTemplate)


def _has_null_lists(versioned: Any) -> bool:
    cls = versioned.__class__
    if cls in _CLAIMS:
        reported = versioned.status.devices
        return not versioned.spec.devices.requests or (
            bool(reported) and not all(device.conditions for device in reported)
        )
    return cls in _TEMPLATES and not versioned.spec.spec.devices.requests


def _with_null_lists(versioned: Any) -> Any:
    plain = msgspec.to_builtins(versioned, enc_hook=to_builtin, builtin_types=(bytes, msgspec.Raw))
    spec = plain["spec"]["spec"] if "spec" in plain["spec"] else plain["spec"]
    spec["devices"].setdefault("requests", None)
    for device in plain.get("status", {}).get("devices", ()):
        device.setdefault("conditions", None)
    return plain
