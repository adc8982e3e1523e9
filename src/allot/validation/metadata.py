"""Object metadata: what every kind has in common, on create and on update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from allot.api.identities import GroupVersion
from allot.api.meta import ObjectMeta, OwnerReference
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid, required, too_long
from allot.validation.formats import (
    byte_length,
    generated_name_problems,
    is_annotation_key,
    is_label_pair,
    label_key_problems,
    label_problems,
    subdomain_problems,
)
from allot.validation.names import validate_label_key, validate_label_value

MAX_ANNOTATIONS_SIZE: Final = 256 * 1024
MAX_BYTES_OF_CHARACTER: Final = 4
IMMUTABLE: Final = "field is immutable"
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "foregroundDeletion", "orphan"})

METADATA: Final = FieldPath("metadata")


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
        for problem in label_problems(metadata.namespace) if metadata.namespace else ():
            yield invalid(path / "namespace", metadata.namespace, problem)
    elif metadata.namespace:
        yield forbidden(path / "namespace", "not allowed on this type")
    if metadata.generation < 0:
        yield invalid(
            path / "generation", metadata.generation, "must be greater than or equal to 0"
        )
    yield from _validate_contents(metadata, path)
    if metadata.finalizers:
        yield from _validate_finalizers(
            metadata.finalizers, path / "finalizers", any_finalizer=any_finalizer
        )


def finalizer_warnings(metadata: ObjectMeta) -> Iterator[str]:
    """Finalizers that are accepted, but likely to be used by others, too."""
    for finalizer in metadata.finalizers:
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            yield (
                f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name to '
                "avoid accidental conflicts with other finalizer writers"
            )


def _validate_contents(metadata: ObjectMeta, path: FieldPath) -> Iterator[FieldError]:
    if metadata.labels:
        yield from validate_labels(metadata.labels, path / "labels")
    if metadata.annotations:
        yield from validate_annotations(metadata.annotations, path / "annotations")
    if metadata.owner_references:
        yield from _validate_owners(metadata.owner_references, path / "ownerReferences")


def validate_labels(labels: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    for key, value in labels.items():
        if is_label_pair(key, value):
            continue
        yield from validate_label_key(key, path)
        yield from validate_label_value(value, path)


def validate_annotations(annotations: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    characters = 0
    for key, value in annotations.items():
        characters += len(key) + len(value)
        if not is_annotation_key(key):
            for problem in label_key_problems(key.lower()):
                yield invalid(path, key, problem)
    if characters * MAX_BYTES_OF_CHARACTER <= MAX_ANNOTATIONS_SIZE:
        return
    size = sum(byte_length(key) + byte_length(value) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS_SIZE:
        yield too_long(path, MAX_ANNOTATIONS_SIZE)


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
    if not (reference.kind and reference.name and reference.uid):
        for name in ("kind", "name", "uid"):
            if not getattr(reference, name):
                yield required(path / name, "must not be empty")
    if (group, version, reference.kind) == ("", "v1", "Event"):
        yield invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner")


def _validate_finalizers(
    finalizers: tuple[str, ...], path: FieldPath, *, any_finalizer: bool
) -> Iterator[FieldError]:
    for finalizer in finalizers:
        yield from validate_label_key(finalizer, path)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield invalid(
            path,
            finalizers,
            "finalizer orphan and foregroundDeletion cannot be both set",
        )

    if not any_finalizer:
        yield from _validate_finalizer_names(finalizers, path)


def _validate_finalizer_names(finalizers: tuple[str, ...], path: FieldPath) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            yield invalid(
                path @ index,
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            )


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
                path / "finalizers",
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}",
            )
    fields: tuple[tuple[str, Any, Any], ...] = (
        ("name", new.name, old.name),
        ("namespace", new.namespace, old.namespace),
        ("uid", new.uid, old.uid),
        ("creationTimestamp", new.creation_timestamp, old.creation_timestamp),
        ("deletionTimestamp", new.deletion_timestamp, old.deletion_timestamp),
        (
            "deletionGracePeriodSeconds",
            new.deletion_grace_period_seconds,
            old.deletion_grace_period_seconds,
        ),
    )
    for name, value, before in fields:
        if value != before:
            yield invalid(path / name, value, IMMUTABLE)
    yield from _validate_contents(new, path)
    if new.finalizers and not any_finalizer:
        yield from _validate_finalizer_names(new.finalizers, path / "finalizers")
