"""The environment of containers: variables, and where their values come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from allot.api.quantity import QuantityError, quantity_from_json
from allot.validation.core_names import config_key_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
    not_found,
    not_supported,
    required,
)
from allot.validation.formats import label_key_problems, subdomain_problems
from allot.validation.names import validate_label
from allot.validation.parts import Part, part, parts, text

VARIABLE_NAME_RULE: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
MORE_THAN_ONE: Final = "may not have more than one field specified at a time"
FIELDS: Final = frozenset(
    (
        "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.host",
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.hostIP",
        "status.hostIPs", "status.phase", "status.podIP", "status.podIPs",
    )
)  # fmt: skip
"""The fields of pods that the downward API knows."""
VARIABLE_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
"""Those that a variable can have."""
RESOURCES: Final = tuple(
    f"{kind}.{name}"
    for kind in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_SIZES: Final = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip


def validate_variables(
    container: Part, volumes: Mapping[str, Part], path: FieldPath
) -> Iterator[FieldError]:
    """`env` and `envFrom` of a container."""
    for index, variable in enumerate(parts(container, "env")):
        yield from _validate_variable(variable, path / "env" @ index)
        source = part(variable, "valueFrom")
        if source.get("fileKeyRef") is not None:
            name = text(part(source, "fileKeyRef"), "volumeName")
            where = path / "env" @ index / "valueFrom" / "fileKeyRef" / "volumeName"
            yield from _validate_volume_of_file(name, volumes, where)
    sources_path = path / "envFrom"
    for index, source in enumerate(parts(container, "envFrom")):
        prefix = text(source, "prefix")
        if prefix:
            yield from _validate_name(prefix, sources_path @ index / "prefix")
        named = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in named:
            yield from _validate_source(part(source, field), sources_path @ index / field)
        if not named:
            yield invalid(sources_path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(named) > 1:
            yield invalid(sources_path, "", MORE_THAN_ONE)


def _validate_volume_of_file(
    name: str, volumes: Mapping[str, Part], path: FieldPath
) -> Iterator[FieldError]:
    if name not in volumes:
        yield not_found(path, name)
    elif volumes[name].get("emptyDir") is None:
        yield invalid(path, name, "referenced volume must be of type emptyDir")


def _validate_source(source: Part, path: FieldPath) -> Iterator[FieldError]:
    name = text(source, "name")
    if not name:
        yield required(path / "name")
        return
    for problem in subdomain_problems(name):
        yield invalid(path / "name", name, problem)


def _validate_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    if any(not " " <= character <= "~" or character == "=" for character in name):
        yield invalid(path, name, VARIABLE_NAME_RULE)


def _validate_variable(variable: Part, path: FieldPath) -> Iterator[FieldError]:
    name = text(variable, "name")
    if not name:
        yield required(path / "name")
    else:
        yield from _validate_name(name, path / "name")
    source = variable.get("valueFrom")
    if not isinstance(source, dict):
        return
    where = path / "valueFrom"
    named = [field for field in _SOURCES if source.get(field) is not None]
    for field in named:
        yield from _SOURCES[field](part(source, field), where / field)
    if not named:
        yield invalid(where, "", _NO_SOURCE)
    elif text(variable, "value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    elif len(named) > 1:
        yield invalid(where, "", MORE_THAN_ONE)


def _validate_field(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    yield from validate_field_reference(reference, path, VARIABLE_FIELDS)


def validate_field_reference(
    reference: Part, path: FieldPath, allowed: tuple[str, ...]
) -> Iterator[FieldError]:
    """A field of the pod, for a variable or a file."""
    version, field = text(reference, "apiVersion"), text(reference, "fieldPath")
    field_path = path / "fieldPath"
    if not version:
        yield required(path / "apiVersion")
        return
    if not field:
        yield required(field_path)
        return
    name, subscript = _split(field)
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif name not in FIELDS:
        problem = f"field label not supported: {name}"
    elif subscript is not None and name not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    if problem:
        yield invalid(field_path, field, f"error converting fieldPath: {problem}")
    elif subscript is None:
        if {"spec.host": "spec.nodeName"}.get(name, name) not in allowed:
            yield not_supported(field_path, field, allowed)
    else:
        key = subscript.lower() if name == "metadata.annotations" else subscript
        for key_problem in label_key_problems(key):
            yield invalid(path, subscript, key_problem)


def _split(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is `metadata.labels` and `a`."""
    name, found, rest = field.partition("['")
    return (name, rest.removesuffix("']")) if found and rest.endswith("']") else (field, None)


def validate_resource_reference(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    """A resource of a container, for a variable or a file."""
    name = text(reference, "resource")
    if not name:
        yield required(path / "resource")
    elif name not in RESOURCES and not name.startswith(_HUGE_PAGES):
        yield not_supported(path / "resource", name, RESOURCES)
    yield from _validate_divisor(name, reference.get("divisor"), path / "divisor")


def _validate_divisor(name: str, divisor: object, path: FieldPath) -> Iterator[FieldError]:
    try:
        written = str(quantity_from_json(divisor)) if divisor is not None else "0"
    except QuantityError:
        return  # found when it was decoded
    if written == "0":
        return
    resource = name.partition(".")[2]
    if resource == "cpu":
        allowed: tuple[str, ...] = ("1m", "1")
        shown = "1m and 1"
    elif resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        allowed, shown = _SIZES, ", ".join(_SIZES)
    else:
        return
    if written not in allowed:
        of = {"ephemeral-storage": "local ephemeral storage"}.get(resource, resource)
        of = "hugepages" if resource.startswith("hugepages-") else of
        yield invalid(
            path, name, f"only divisor's values {shown} are supported with the {of} resource"
        )


def _validate_key(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    """A key of a ConfigMap or Secret."""
    name, key = text(reference, "name"), text(reference, "key")
    for problem in subdomain_problems(name):
        yield invalid(path / "name", name, problem)
    if not key:
        yield required(path / "key")
        return
    for problem in config_key_problems(key):
        yield invalid(path / "key", key, problem)


def _validate_file(reference: Part, path: FieldPath) -> Iterator[FieldError]:
    """A key of a file in a volume."""
    key, volume, where = (text(reference, field) for field in ("key", "volumeName", "path"))
    if not key:
        yield required(path / "key")
    else:
        yield from _validate_name(key, path / "key")
    if not volume:
        yield required(path / "volumeName")
    else:
        yield from validate_label(volume, path / "volumeName")
    if not where:
        yield required(path / "path")
    elif ".." in where.split("/"):
        yield invalid(path / "path", where, "must not contain '..'")


_SOURCES: Final[dict[str, Callable[[Part, FieldPath], Iterator[FieldError]]]] = {
    "fieldRef": _validate_field,
    "resourceFieldRef": validate_resource_reference,
    "configMapKeyRef": _validate_key,
    "secretKeyRef": _validate_key,
    "fileKeyRef": _validate_file,
}
_NO_SOURCE: Final = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
