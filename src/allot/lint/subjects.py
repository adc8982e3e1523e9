"""Objects as rules see them: a manifest, decoded, with the DRA parts at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.claims import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from allot.api.core import PodParts, PodSpec
from allot.api.decoding import DecodeError, decode
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.quantity import Quantity
from allot.api.resource import ALL
from allot.api.scheme import UnknownKindError, decode_object, is_typed_group
from allot.api.slices import ResourceSlice
from allot.lint.manifests import Manifest, Unreadable, path_parts

NOW: Final = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
DEFAULT_NAMESPACE: Final = "default"

# Where the pod spec is in kinds that have one.
POD_SPECS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("apps", "Deployment"): ("spec", "template", "spec"),
    ("apps", "ReplicaSet"): ("spec", "template", "spec"),
    ("apps", "StatefulSet"): ("spec", "template", "spec"),
    ("apps", "DaemonSet"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}


class Alternative(NamedTuple):
    """One way to satisfy a request: the request itself, or one of its subrequests."""

    path: str
    request: str
    subrequest: str
    spec: ExactDeviceRequest | DeviceSubRequest

    @property
    def label(self) -> str:
        return f"{self.request}/{self.subrequest}" if self.subrequest else self.request

    @property
    def wants_all(self) -> bool:
        return self.spec.allocation_mode == ALL

    @property
    def needed(self) -> int:
        """How many devices it needs at least."""
        return 1 if self.wants_all else self.spec.count

    @property
    def capacity(self) -> dict[str, Quantity]:
        return self.spec.capacity.requests if self.spec.capacity is not None else {}

    def derived(self, attribute: str) -> str | None:
        """The expression that derives the attribute here.

        A bare name is in the domain of the device's driver, so a constraint may name it in full.
        """
        derived = {each.name: each.expression for each in self.spec.derived_attributes}
        return derived.get(attribute, derived.get(attribute.rpartition("/")[2]))

    def is_subject_to(self, constraint: DeviceConstraint) -> bool:
        names = constraint.requests
        return not names or self.request in names or self.label in names


class ClaimView(NamedTuple):
    """The devices that a claim, or a template's claim, asks for, and where that is in the object."""

    devices: DeviceClaim
    path: str

    def alternatives_of(self, index: int) -> list[Alternative]:
        request: DeviceRequest = self.devices.requests[index]
        path = f"{self.path}.requests[{index}]"
        if request.exactly is not None:
            return [Alternative(f"{path}.exactly", request.name, "", request.exactly)]
        return [
            Alternative(f"{path}.firstAvailable[{number}]", request.name, each.name, each)
            for number, each in enumerate(request.first_available)
        ]

    def alternatives(self) -> Iterator[Alternative]:
        for index in range(len(self.devices.requests)):
            yield from self.alternatives_of(index)

    def constraints(self) -> Iterator[tuple[str, DeviceConstraint]]:
        for index, constraint in enumerate(self.devices.constraints):
            yield f"{self.path}.constraints[{index}]", constraint


class PodView(NamedTuple):
    """The DRA parts of a pod spec, and where the spec is in the object."""

    spec: PodSpec
    path: str


@dataclass(frozen=True, slots=True)
class LintSubject:
    """One object that lint checks. `object` is None if it cannot be decoded."""

    manifest: Manifest
    gvk: GroupVersionKind
    object: Any = None
    claim: ClaimView | None = None
    pod: PodView | None = None

    @property
    def namespace(self) -> str:
        return self.manifest.namespace or DEFAULT_NAMESPACE

    def written_path(self, path: str) -> str:
        """A path in the hub version as the manifest has it: v1beta1 has other fields."""
        if self.gvk.version != "v1beta1":
            return path
        parts: list[str] = []
        place = self.manifest.place
        for part in path_parts(path):
            inner = place.items.get(part)
            if inner is None and "basic" in place.items:
                place = place.items["basic"]
                parts.append(".basic")
                inner = place.items.get(part)
            if inner is None and part == "exactly":
                continue
            parts.append(f"[{part}]" if isinstance(part, int) else _dotted(part))
            place = inner or place
        return "".join(parts).removeprefix(".")


def _dotted(part: str) -> str:
    return f"[{part}]" if "." in part or "/" in part else f".{part}"


def subject_of(manifest: Manifest) -> LintSubject:
    """The manifest, with the parts of it that can be decoded."""
    gvk = GroupVersionKind(*GroupVersion.parse(manifest.api_version), manifest.kind)
    if is_typed_group(gvk.group):
        return _typed(manifest, gvk)
    path = POD_SPECS.get((gvk.group, gvk.kind))
    if path is None:
        return LintSubject(manifest, gvk)
    try:
        spec = decode(pod_body(manifest, path), PodParts, "v1").spec
    except DecodeError:
        return LintSubject(manifest, gvk)
    return LintSubject(manifest, gvk, pod=PodView(spec, ".".join(path)))


def pod_body(manifest: Manifest, path: tuple[str, ...]) -> bytes:
    """The pod spec at this path, as a pod."""
    spec: Any = manifest.data
    for part in path:
        spec = spec.get(part) if isinstance(spec, dict) else None
    return msgspec.json.encode({"spec": spec if isinstance(spec, dict) else {}})


def _typed(manifest: Manifest, gvk: GroupVersionKind) -> LintSubject:
    try:
        obj = decode_object(manifest.body, gvk, NOW)
    except (DecodeError, UnknownKindError):
        return LintSubject(manifest, gvk)
    match obj:
        case ResourceClaim():
            claim = ClaimView(obj.spec.devices, "spec.devices")
        case ResourceClaimTemplate():
            claim = ClaimView(obj.spec.spec.devices, "spec.spec.devices")
        case _:
            return LintSubject(manifest, gvk, obj)
    return LintSubject(manifest, gvk, obj, claim)


def slices_among(manifests: Iterable[Manifest | Unreadable]) -> Iterator[ResourceSlice]:
    """The ResourceSlices, of any version; what cannot be decoded is left out."""
    for manifest in manifests:
        if isinstance(manifest, Manifest) and manifest.kind == "ResourceSlice":
            slice_ = subject_of(manifest).object
            if isinstance(slice_, ResourceSlice):
                yield slice_
