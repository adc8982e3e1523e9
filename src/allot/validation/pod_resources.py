"""The resources of a whole pod, and what its containers request together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from allot.api.quantity import Quantity, QuantityError, quantity_from_json
from allot.validation.container_resources import (
    HUGE_PAGES,
    ResourceNames,
    validate_resource_requirements,
)
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.parts import Part, part, parts, text

_OF_WHOLE_PODS: Final = ("cpu", "memory")


def is_of_whole_pods(name: str) -> bool:
    """Whether pods can have the resource beside their containers."""
    return name in _OF_WHOLE_PODS or name.startswith(HUGE_PAGES)


def validate_pod_resources(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """`resources` of a pod or of a pod template."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return
    if text(part(spec, "os"), "name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    yield from validate_resource_requirements(resources, path, ResourceNames.OF_PODS)
    requests, limits = _amounts(resources, "requests"), _amounts(resources, "limits")
    for name, together in sorted(aggregate_requests(spec).items()):
        if name in requests and requests[name] < together:
            rule = f"must be greater than or equal to aggregate container requests of {together}"
            yield invalid(path / "requests" @ name, str(requests[name]), rule)
    for index, container in enumerate(parts(spec, "containers")):
        for name, limit in _amounts(part(container, "resources"), "limits").items():
            if name in limits and limits[name] < limit:
                where = path / "containers" @ index @ name / "limits"
                rule = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(where, str(limit), rule)


def aggregate_requests(
    spec: Mapping[str, Any], kind: Literal["requests", "limits"] = "requests"
) -> dict[str, Quantity]:
    """What the containers request at most at the same time, beside each other and before each other."""
    running: dict[str, Quantity] = {}
    for container in parts(spec, "containers"):
        _add(running, _amounts(part(container, "resources"), kind))
    beside: dict[str, Quantity] = {}
    starting: dict[str, Quantity] = {}
    for container in parts(spec, "initContainers"):
        own = _amounts(part(container, "resources"), kind)
        if container.get("restartPolicy") == "Always":
            _add(running, own)
            _add(beside, own)
            own = dict(beside)
        else:
            own = dict(own)
            _add(own, beside)
        _keep_largest(starting, own)
    _keep_largest(running, starting)
    return running


def _add(amounts: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts[name] + amount if name in amounts else amount


def _keep_largest(amounts: dict[str, Quantity], others: Mapping[str, Quantity]) -> None:
    for name, amount in others.items():
        if name not in amounts or amounts[name] < amount:
            amounts[name] = amount


def _amounts(resources: Mapping[str, Any], kind: str) -> dict[str, Quantity]:
    """Those that are quantities: others are found when they are validated."""
    amounts: dict[str, Quantity] = {}
    for name, written in part(resources, kind).items():
        try:
            amounts[name] = quantity_from_json(written)
        except QuantityError:
            continue
    return amounts
