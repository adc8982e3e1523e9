"""Device classes that back extended resources (KEP-5004), by the name of the resource."""

from __future__ import annotations

from allot.api.classes import DeviceClass
from allot.api.resource import IMPLICIT_EXTENDED_RESOURCE_PREFIX


class ResourceClasses:
    """Device classes by the extended resources that they back."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._claimants: dict[str, set[str]] = {}
        """Names of classes by the extended resource they name."""
        self._chosen: dict[str, str] = {}

    def put(self, class_: DeviceClass) -> None:
        name = class_.metadata.name
        self.remove(name)
        self._classes[name] = class_
        resource = class_.spec.extended_resource_name
        if resource:
            self._claimants.setdefault(resource, set()).add(name)
            self._choose(resource)

    def remove(self, name: str) -> None:
        class_ = self._classes.pop(name, None)
        resource = class_.spec.extended_resource_name if class_ is not None else None
        if resource:
            self._claimants[resource].discard(name)
            self._choose(resource)

    def class_of(self, resource: str) -> str | None:
        if resource.startswith(IMPLICIT_EXTENDED_RESOURCE_PREFIX):
            name = resource.removeprefix(IMPLICIT_EXTENDED_RESOURCE_PREFIX)
            return name if name in self._classes else None
        return self._chosen.get(resource)

    def is_backed(self, resource: str) -> bool:
        return self.class_of(resource) is not None

    def _choose(self, resource: str) -> None:
        """Of several classes the newest backs a resource, then the first by name."""
        claimants = self._claimants[resource]
        if claimants:
            self._chosen[resource] = min(claimants, key=lambda name: (-self._created(name), name))
        else:
            del self._claimants[resource], self._chosen[resource]

    def _created(self, name: str) -> float:
        time = self._classes[name].metadata.creation_timestamp
        return time.timestamp() if time is not None else 0.0
