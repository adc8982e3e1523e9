"""Object metadata: what every kind has in common, on create and on update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from allot.api.base import wire_names
from allot.api.identities import GroupVersion
from allot.api.meta import ObjectMeta, OwnerReference
from allot.validation.accepted import Accepted
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid, required, too_long
from allot.validation.formats import (
    are_annotation_keys,
    are_labels,
    byte_length,
    generated_name_problems,
    is_label,
    label_key_problems,
    label_problems,
    subdomain_problems,
)
from allot.validation.names import validate_label_key, validate_label_value

MAX_ANNOTATIONS_SIZE: Final = 256 * 1024
MAX_BYTES_OF_CHARACTER: Final = 4
MAX_OWNER_TYPE: Final = 512
"""Types of owners that are longer are looked at every time."""
IMMUTABLE: Final = "field is immutable"
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "foregroundDeletion", "orphan"})

METADATA: Final = FieldPath("metadata")
FINALIZERS: Final = METADATA / "finalizers"


def validate_metadata(
    metadata: ObjectMeta,
    *,
    namespaced: bool,
    check_generate_name: bool = True,
    name_problems: Callable[[str], list[str]] = subdomain_problems,
    any_finalizer: bool = False,
) -> Iterator[FieldError]:
    """The metadata of a new object, after a name was generated for it.

    `any_finalizer`: whether finalizers need no domain, as in custom resources.
    """
    path = METADATA
    if metadata.generate_name and check_generate_name:
        for problem in generated_name_problems(metadata.generate_name):
            yield invalid(path / "generateName", metadata.generate_name, problem)
    if not metadata.name:
        yield required(path / "name", "name or generateName is required")
    else:
        for problem in name_problems(metadata.name):
            yield invalid(path / "name", metadata.name, problem)
    if namespaced:
        if not metadata.namespace:
            yield required(path / "namespace")
        elif not is_label(metadata.namespace):
            for problem in label_problems(metadata.namespace):
                yield invalid(path / "namespace", metadata.namespace, problem)
    elif metadata.namespace:
        yield forbidden(path / "namespace", "not allowed on this type")
    if metadata.generation < 0:
        yield invalid(
            path / "generation", metadata.generation, "must be greater than or equal to 0"
        )
    if not _has_plain_contents(metadata):
        yield from _validate_contents(metadata, path)
    if metadata.finalizers:
        yield from _validate_finalizers(metadata.finalizers, any_finalizer=any_finalizer)


def finalizer_warnings(metadata: ObjectMeta) -> Iterator[str]:
    """Finalizers that are accepted, but likely to be used by others, too."""
    for finalizer in metadata.finalizers:
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            yield (
                f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name to '
                "avoid accidental conflicts with other finalizer writers"
            )


def _has_plain_contents(metadata: ObjectMeta) -> bool:
    """Whether there is certainly nothing to say about labels, annotations and owners: the usual case."""
    labels, annotations, owners = metadata.labels, metadata.annotations, metadata.owner_references
    if labels and not are_labels(labels):
        return False
    if annotations and not (_are_short(annotations) and are_annotation_keys(annotations)):
        return False
    if not owners:
        return True
    controllers = 0
    for owner in owners:
        if not (owner.kind and owner.name and owner.uid):
            return False
        type_ = (owner.api_version, owner.kind)
        if type_ not in _OWNER_TYPES and not _OWNER_TYPES.accepts(*type_):
            return False
        if owner.controller:
            controllers += 1
    return controllers < 2


def _validate_contents(metadata: ObjectMeta, path: FieldPath) -> Iterator[FieldError]:
    yield from validate_labels(metadata.labels, path / "labels")
    yield from validate_annotations(metadata.annotations, path / "annotations")
    yield from _validate_owners(metadata.owner_references, path / "ownerReferences")


def validate_labels(labels: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    if are_labels(labels):
        return
    for key, value in labels.items():
        yield from validate_label_key(key, path)
        yield from validate_label_value(value, path)


def validate_annotations(annotations: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    if not are_annotation_keys(annotations):
        for key in annotations:
            for problem in label_key_problems(key.lower()):
                yield invalid(path, key, problem)
    if _are_short(annotations):
        return
    size = sum(byte_length(key) + byte_length(value) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS_SIZE:
        yield too_long(path, MAX_ANNOTATIONS_SIZE)


def _are_short(annotations: Mapping[str, str]) -> bool:
    """Whether they are certainly within the limit: their bytes are not counted then."""
    characters = 0
    for key, value in annotations.items():
        characters += len(key) + len(value)
    return characters * MAX_BYTES_OF_CHARACTER <= MAX_ANNOTATIONS_SIZE


def _validate_owners(
    references: tuple[OwnerReference, ...], path: FieldPath
) -> Iterator[FieldError]:
    controller = ""
    for index, reference in enumerate(references):
        yield from _validate_owner(reference, path @ index)
        if reference.controller:
            name = f"{reference.kind}/{reference.name}"
            if controller:
                yield invalid(
                    path,
                    references,
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}',
                )
            else:
                controller = name


def _validate_owner(reference: OwnerReference, path: FieldPath) -> Iterator[FieldError]:
    group, version = GroupVersion.parse(reference.api_version)
    if not version or "/" in group:
        yield required(path / "apiVersion", "must not be empty")
    for name in ("kind", "name", "uid"):
        if not getattr(reference, name):
            yield required(path / name, "must not be empty")
    if (group, version, reference.kind) == ("", "v1", "Event"):
        yield invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner")


def _may_own(api_version: str, kind: str) -> bool:
    """Whether objects of this kind can be owners."""
    owner = OwnerReference(api_version=api_version, kind=kind, name="name", uid="uid")
    return not any(_validate_owner(owner, METADATA))


_OWNER_TYPES: Final = Accepted[tuple[str, str]](_may_own, MAX_OWNER_TYPE)


def _validate_finalizers(
    finalizers: tuple[str, ...], *, any_finalizer: bool
) -> Iterator[FieldError]:
    path = FINALIZERS
    for finalizer in finalizers:
        yield from validate_label_key(finalizer, path)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield invalid(
            path,
            finalizers,
            "finalizer orphan and foregroundDeletion cannot be both set",
        )

    if not any_finalizer:
        yield from _validate_finalizer_names(finalizers)


def _validate_finalizer_names(finalizers: tuple[str, ...]) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            yield invalid(
                FINALIZERS @ index,
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            )


_IMMUTABLE_NAMES: Final = (
    "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_immutable_fields: Final = attrgetter(*(wire_names(ObjectMeta)[name] for name in _IMMUTABLE_NAMES))


def validate_metadata_update(
    new: ObjectMeta,
    old: ObjectMeta,
    *,
    any_finalizer: bool = False,
) -> Iterator[FieldError]:
    """The metadata of an existing object. Its name is not validated again."""
    path = METADATA
    if old.deletion_timestamp is not None:
        added = sorted(set(new.finalizers) - set(old.finalizers))
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            yield forbidden(
                FINALIZERS,
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}",
            )
    now, before = _immutable_fields(new), _immutable_fields(old)
    if now != before:
        for name, value, was in zip(_IMMUTABLE_NAMES, now, before, strict=True):
            if value != was:
                yield invalid(path / name, value, IMMUTABLE)
    if not _has_plain_contents(new):
        yield from _validate_contents(new, path)
    if new.finalizers and not any_finalizer:
        yield from _validate_finalizer_names(new.finalizers)
