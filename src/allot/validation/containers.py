"""Containers of pods and pod templates: regular ones, init containers, and ephemeral ones.

Claims are in `pod`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from allot.validation.container_environment import validate_variables
from allot.validation.container_resources import validate_container_resources
from allot.validation.container_volumes import (
    Volumes,
    validate_devices,
    validate_mounts,
    volumes_by_name,
)
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from allot.validation.names import validate_label
from allot.validation.networking import PORT_RANGE, validate_port_name
from allot.validation.parts import Part, part, parts, text
from allot.validation.pod import unknown_claim
from allot.validation.probes import MAX_PORT, PROBES, validate_probes
from allot.validation.restart_rules import validate_restarts
from allot.validation.security_context import validate_security_context

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PADDED: Final = "must not have leading or trailing whitespace"
_RESIZABLE: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
NOT_FOR_INIT: Final = "may not be set for init containers without restartPolicy=Always"
NOT_FOR_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_FIELDS_NOT_FOR_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


class PodOfContainers(NamedTuple):
    """What the rules of containers ask about their pod."""

    volumes: Volumes
    restart_policy: str
    host_users: bool
    grace_seconds: int


def validate_containers(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The containers of a pod or of a pod template, with defaults."""
    pod = PodOfContainers(
        volumes_by_name(spec),
        text(spec, "restartPolicy"),
        spec.get("hostUsers") is not False,
        spec.get("terminationGracePeriodSeconds") or 0,
    )
    regular = parts(spec, "containers")
    if not regular:
        yield required(path / "containers")
    names: set[str] = set()
    for index, container in enumerate(regular):
        one = path / "containers" @ index
        yield from _validate_common(container, pod, one)
        yield from _validate_new_name(container, names, one)
        yield from validate_probes(container, pod.grace_seconds, one)
        yield from validate_restarts(container, one)
    yield from _validate_host_ports(regular, path / "containers")
    for index, container in enumerate(parts(spec, "initContainers")):
        one = path / "initContainers" @ index
        yield from _validate_common(container, pod, one)
        yield from _validate_new_name(container, names, one, is_init=True)
        yield from validate_restarts(container, one, is_init=True)
        if container.get("restartPolicy") == "Always":
            yield from validate_probes(container, pod.grace_seconds, one)
        else:
            for field in ("lifecycle", *PROBES):
                if container.get(field) is not None:
                    yield forbidden(one / field, NOT_FOR_INIT)
    yield from _validate_ephemeral(spec, pod, names, path / "ephemeralContainers")


def validate_images(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """What holds for pods and not for templates."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(parts(spec, field)):
            yield from _validate_image(container, path / field @ index)


def _validate_image(container: Part, path: FieldPath) -> Iterator[FieldError]:
    image = text(container, "image")
    if image != image.strip():
        yield invalid(path / "image", image, PADDED)


def _validate_new_name(
    container: Part, names: set[str], path: FieldPath, *, is_init: bool = False
) -> Iterator[FieldError]:
    """Adds the name to `names`."""
    name = text(container, "name")
    if name in names:
        yield duplicate(path / "name", name)
    if name or not is_init:
        names.add(name)


def _validate_ephemeral(
    spec: Part, pod: PodOfContainers, names: set[str], path: FieldPath
) -> Iterator[FieldError]:
    others = frozenset(names)
    claims = [text(claim, "name") for claim in parts(spec, "resourceClaims")]
    known, unknown = frozenset(claims), unknown_claim(claims)
    for index, container in enumerate(parts(spec, "ephemeralContainers")):
        one = path @ index
        yield from _validate_common(container, pod, one)
        yield from _validate_claims(container, known, unknown, one / "resources" / "claims")
        yield from _validate_image(container, one)
        yield from _validate_new_name(container, names, one)
        target = text(container, "targetContainerName")
        if target and target not in others:
            yield not_found(one / "targetContainerName", target)
        for field in _FIELDS_NOT_FOR_EPHEMERAL:
            value = container.get(field)
            if value if field == "resources" else value is not None:
                yield forbidden(one / field, NOT_FOR_EPHEMERAL)
        for number, mount in enumerate(parts(container, "volumeMounts")):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    yield forbidden(one / "volumeMounts" @ number / field, NOT_FOR_EPHEMERAL)


def _validate_claims(
    container: Part, known: frozenset[str], unknown: str, path: FieldPath
) -> Iterator[FieldError]:
    """Those of ephemeral containers, which may not use any."""
    for index, claim in enumerate(parts(part(container, "resources"), "claims")):
        name = text(claim, "name")
        if name not in known:
            yield not_found(path @ index, name, unknown)


def _validate_common(
    container: Part, pod: PodOfContainers, path: FieldPath
) -> Iterator[FieldError]:
    """What holds for all containers."""
    name = text(container, "name")
    if not name:
        yield required(path / "name")
    else:
        yield from validate_label(name, path / "name")
    if not text(container, "image"):
        yield required(path / "image")
    policy = container.get("terminationMessagePolicy")
    if policy is not None and policy not in MESSAGE_POLICIES:
        yield not_supported(
            path / "terminationMessagePolicy", policy, MESSAGE_POLICIES, is_ordered=True
        )
    yield from _validate_ports(parts(container, "ports"), path / "ports")
    yield from validate_variables(container, pod.volumes, path)
    yield from validate_mounts(container, pod.volumes, path / "volumeMounts")
    yield from validate_devices(container, pod.volumes, path / "volumeDevices")
    policy = container.get("imagePullPolicy")
    if policy is not None and policy not in PULL_POLICIES:
        yield not_supported(path / "imagePullPolicy", policy, PULL_POLICIES)
    yield from validate_container_resources(container.get("resources") or {}, path / "resources")
    yield from _validate_resize_policy(container, pod, path / "resizePolicy")
    yield from validate_security_context(
        part(container, "securityContext"), path / "securityContext", host_users=pod.host_users
    )


def _validate_ports(ports: list[Part], path: FieldPath) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        one = path @ index
        name, number, host = text(port, "name"), port.get("containerPort"), port.get("hostPort")
        if name:
            problems = list(validate_port_name(name, one / "name"))
            yield from problems
            if not problems and name in names:
                yield duplicate(one / "name", name)
            names.add(name)
        if not number:
            yield required(one / "containerPort")
        elif not 1 <= number <= MAX_PORT:
            yield invalid(one / "containerPort", number, PORT_RANGE)
        if host and not 1 <= host <= MAX_PORT:
            yield invalid(one / "hostPort", host, PORT_RANGE)
        protocol = port.get("protocol", "TCP")
        if not protocol:
            yield required(one / "protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(one / "protocol", protocol, PROTOCOLS)


def _validate_host_ports(containers: list[Part], path: FieldPath) -> Iterator[FieldError]:
    """No two containers have the same port of the node."""
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(parts(container, "ports")):
            if not port.get("hostPort"):
                continue
            shown = f"{port.get('protocol', 'TCP')}/{text(port, 'hostIP')}/{port['hostPort']}"
            if shown in seen:
                yield duplicate(path @ index / "ports" @ number / "hostPort", shown)
            seen.add(shown)


def _validate_resize_policy(
    container: Part, pod: PodOfContainers, path: FieldPath
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, policy in enumerate(parts(container, "resizePolicy")):
        name, restart = text(policy, "resourceName"), text(policy, "restartPolicy")
        if name in seen:
            yield duplicate(path @ index, name)
        seen.add(name)
        for value, allowed in ((name, _RESIZABLE), (restart, _RESIZE_POLICIES)):
            if not value:
                yield required(path)
            elif value not in allowed:
                yield not_supported(path, value, allowed)
        if pod.restart_policy == "Never" and restart != "NotRequired":
            yield invalid(
                path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            )
