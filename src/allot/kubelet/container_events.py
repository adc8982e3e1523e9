"""The events of containers, from the statuses before and after a step: Pulled, Created, Started, Killing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from allot.kubelet.containers import running, terminated

_STATUSES: Final = {
    "initContainerStatuses": "initContainers",
    "containerStatuses": "containers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
PULLED, CREATED, STARTED, KILLING = "Pulled", "Created", "Started", "Killing"


class ContainerPlace(NamedTuple):
    """The field of the spec and the name of a container."""

    field: str
    name: str


class ContainerEvent(NamedTuple):
    container: ContainerPlace
    reason: str
    note: str


def container_events(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[ContainerEvent]:
    """The events of containers that were started between two statuses of a pod."""
    earlier = dict(_containers(before))
    for place, status in _containers(after):
        if _starts(status) > _starts(earlier.get(place, {})):
            image = status.get("image", "")
            yield ContainerEvent(
                place, PULLED, f'Container image "{image}" already present on machine'
            )
            yield ContainerEvent(place, CREATED, "Container created")
            yield ContainerEvent(place, STARTED, "Container started")


def killing_events(status: Mapping[str, Any]) -> Iterator[ContainerEvent]:
    """The events of the containers that a pod's deletion stops."""
    for place, container in _containers(status):
        if running(container) is not None:
            yield ContainerEvent(place, KILLING, f"Stopping container {place.name}")


def _containers(status: Mapping[str, Any]) -> Iterator[tuple[ContainerPlace, Mapping[str, Any]]]:
    for field, spec_field in _STATUSES.items():
        for container in status.get(field) or ():
            yield ContainerPlace(spec_field, container.get("name", "")), container


def _starts(status: Mapping[str, Any]) -> int:
    """How often the container was started."""
    if running(status) is None and terminated(status) is None:
        return int(status.get("restartCount") or 0) + bool(status.get("lastState"))
    return int(status.get("restartCount") or 0) + 1
