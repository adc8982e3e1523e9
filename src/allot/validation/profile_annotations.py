"""AppArmor and seccomp profiles in annotations, as older clients write them: they agree with the fields for profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from allot.validation.fields import FieldError, FieldPath, forbidden
from allot.validation.parts import Part, part, parts, text

APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
LOCAL: Final = "localhost/"
_NAMES: Final = {"RuntimeDefault": ("runtime/default",), "Unconfined": ("unconfined",)}
_SECCOMP_NAMES: Final = _NAMES | {"RuntimeDefault": ("runtime/default", "docker/default")}
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def annotated_profile(value: str) -> dict[str, str]:
    """The AppArmor profile that an annotation means; an empty one if it means none."""
    if value.startswith(LOCAL) and value != LOCAL:
        return {"type": "Localhost", "localhostProfile": value.removeprefix(LOCAL)}
    return next(({"type": type_} for type_, names in _NAMES.items() if value in names), {})


def validate_profile_annotations(
    annotations: Mapping[str, Any], spec: Part, path: FieldPath
) -> Iterator[FieldError]:
    """Of a pod or a template with `spec` at `path`."""
    if not annotations:
        return
    whole = part(spec, "securityContext")
    if SECCOMP_OF_POD in annotations:
        place, value = path / "securityContext" / "seccompProfile", annotations[SECCOMP_OF_POD]
        yield from _compare_seccomp(whole.get("seccompProfile"), value, place)
    for context, name, place in _contexts(spec, path):
        value = annotations.get(f"{SECCOMP}{name}")
        if value is not None:
            profile = context.get("seccompProfile")
            yield from _compare_seccomp(profile, value, place / "seccompProfile")
    if text(part(spec, "os"), "name") == "windows":
        return
    for context, name, place in _contexts(spec, path):
        value = annotations.get(f"{APP_ARMOR}{name}")
        if value is not None:
            profile = context.get("appArmorProfile")
            profile = whole.get("appArmorProfile") if profile is None else profile
            yield from _compare("apparmor", profile, value, place / "appArmorProfile", _NAMES)


def _contexts(spec: Part, path: FieldPath) -> Iterable[tuple[Part, str, FieldPath]]:
    """The security context of each container, with the container's name and the path of the context."""
    for field in _CONTAINERS:
        for index, container in enumerate(parts(spec, field)):
            place = path / field @ index / "securityContext"
            yield part(container, "securityContext"), text(container, "name"), place


def _compare_seccomp(profile: Any, value: str, path: FieldPath) -> Iterator[FieldError]:
    return _compare("seccomp", profile, value, path, _SECCOMP_NAMES)


def _compare(
    what: str, profile: Any, value: str, path: FieldPath, names: Mapping[str, tuple[str, ...]]
) -> Iterator[FieldError]:
    """A profile that is set, and what the annotation says instead."""
    if not isinstance(profile, dict):
        return
    type_ = text(profile, "type")
    if type_ in names and value not in names[type_]:
        yield forbidden(path / "type", f"{what} type in annotation and field must match")
    if type_ != "Localhost":
        return
    if not value.startswith(LOCAL):
        yield forbidden(path / "type", f"{what} type in annotation and field must match")
    elif value.removeprefix(LOCAL) != profile.get("localhostProfile"):
        rule = f"{what} profile in annotation and field must match"
        yield forbidden(path / "localhostProfile", rule)
