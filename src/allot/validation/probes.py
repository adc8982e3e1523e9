"""Probes and lifecycle hooks of containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.networking import PORT_RANGE, validate_port_name
from allot.validation.parts import Part, part, parts, text

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
MAX_PORT: Final = 65535
SCHEMES: Final = ("HTTP", "HTTPS")
_COUNTS: Final = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold",
)  # fmt: skip
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_HEADER: Final = "[-A-Za-z0-9]+"
_is_header: Final = re.compile(_HEADER).fullmatch
HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    f"(e.g. 'X-Header-Name', regex used for validation is '{_HEADER}')"
)


def validate_probes(container: Part, grace: int, path: FieldPath) -> Iterator[FieldError]:
    """The hooks and probes of a container that runs as long as its pod, which has `grace` seconds to end."""
    lifecycle = part(container, "lifecycle")
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            yield from _validate_handler(part(lifecycle, hook), grace, path / "lifecycle" / hook)
    for field in PROBES:
        if container.get(field) is not None:
            yield from _validate_probe(field, part(container, field), grace, path / field)


def _validate_probe(
    field: str, probe: Part, pod_grace: int, path: FieldPath
) -> Iterator[FieldError]:
    yield from _validate_handler(probe, pod_grace, path)
    for count in _COUNTS:
        number = probe.get(count)
        if isinstance(number, int) and number < 0:
            yield invalid(path / count, number, NOT_NEGATIVE)
    grace, grace_path = (
        probe.get("terminationGracePeriodSeconds"),
        path / "terminationGracePeriodSeconds",
    )
    if isinstance(grace, int) and grace <= 0:
        yield invalid(grace_path, grace, "must be greater than 0")
    successes = probe.get("successThreshold", 1)
    if field == "readinessProbe":
        if grace is not None:
            yield invalid(grace_path, grace, "must not be set for readinessProbes")
    elif successes != 1:
        yield invalid(path / "successThreshold", successes, "must be 1")


def _validate_handler(handler: Part, grace: int, path: FieldPath) -> Iterator[FieldError]:
    named = [field for field in _HANDLERS if handler.get(field) is not None]
    if not named:
        yield required(path, "must specify a handler type")
        return
    yield from _validate_action(named[0], part(handler, named[0]), grace, path / named[0])
    for field in named[1:]:
        yield forbidden(path / field, "may not specify more than 1 handler type")


def _validate_action(field: str, action: Part, grace: int, path: FieldPath) -> Iterator[FieldError]:
    match field:
        case "sleep":
            seconds = action.get("seconds") or 0
            if not 0 <= seconds <= grace:
                rule = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield invalid(path, seconds, rule)
        case "exec":
            if not action.get("command"):
                yield required(path / "command")
        case "tcpSocket" | "grpc":
            yield from _validate_port(action.get("port", 0), path / "port")
        case "httpGet":
            if not text(action, "path"):
                yield required(path / "path")
            yield from _validate_port(action.get("port", 0), path / "port")
            scheme = text(action, "scheme")
            if scheme not in SCHEMES:
                yield not_supported(path / "scheme", scheme, SCHEMES)
            for header in parts(action, "httpHeaders"):
                name = text(header, "name")
                if not _is_header(name):
                    yield invalid(path / "httpHeaders", name, HEADER_RULE)


def _validate_port(port: Any, path: FieldPath) -> Iterator[FieldError]:
    """A number, or the name of a port."""
    if isinstance(port, str):
        yield from validate_port_name(port, path)
    elif not 1 <= port <= MAX_PORT:
        yield invalid(path, port, PORT_RANGE)
