"""Volumes: PersistentVolumes and their claims, StorageClasses, VolumeAttachments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.raw import RawObject
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    required,
)
from allot.validation.formats import caseless_subdomain_problems, subdomain_problems
from allot.validation.immutable_fields import unchanged
from allot.validation.parts import as_part

SPEC: Final = FieldPath("spec")


def validate_volume_claim(claim: RawObject) -> Iterator[FieldError]:
    spec = claim.get("spec", default={})
    if not spec.get("accessModes"):
        yield required(SPEC / "accessModes", "at least 1 access mode is required")
    if not as_part(as_part(spec.get("resources")).get("requests")).get("storage"):
        yield required(SPEC / "resources[storage]")


# A claim is bound once, may grow, and may change its attributes.
_CLAIM_MAY_CHANGE: Final = ("resources", "volumeAttributesClassName")


def validate_volume_claim_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    before, after = as_part(old.get("spec")), as_part(new.get("spec"))
    free = {*_CLAIM_MAY_CHANGE}
    if not before.get("volumeName"):
        free.add("volumeName")
    if not before.get("storageClassName"):
        free.add("storageClassName")
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if changed - free:
        yield forbidden(
            SPEC,
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims",
        )


def validate_volume(volume: RawObject) -> Iterator[FieldError]:
    spec = volume.get("spec", default={})
    if not spec.get("accessModes"):
        yield required(SPEC / "accessModes")
    if not spec.get("capacity"):
        yield required(SPEC / "capacity")


def validate_storage_class(storage_class: RawObject) -> Iterator[FieldError]:
    if not storage_class.get("provisioner"):
        yield required(FieldPath("provisioner"))


def validate_storage_class_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(field) != old.get(field):
            yield forbidden(FieldPath(field), f"updates to {field} are forbidden.")
    yield from unchanged("volumeBindingMode")(new, old)


def validate_attachment(attachment: RawObject) -> Iterator[FieldError]:
    attacher = attachment.get("spec", "attacher", default="")
    if not attacher:
        yield required(SPEC / "attacher")
    for problem in caseless_subdomain_problems(attacher) if attacher else ():
        yield invalid(SPEC / "attacher", attacher, problem)
    node = attachment.get("spec", "nodeName", default="")
    for problem in subdomain_problems(node):
        yield invalid(SPEC / "nodeName", node, problem)
    source, path = as_part(attachment.get("spec", "source")), SPEC / "source"
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if volume is None and inline is None:
        yield required(
            path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        )
    elif volume is not None and inline is not None:
        yield forbidden(
            path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        )
    elif volume is not None:
        place = path / "persistentVolumeName"
        if not volume:
            yield required(place, "must specify non empty persistentVolumeName")
        for problem in subdomain_problems(volume):
            yield invalid(place, volume, problem)
