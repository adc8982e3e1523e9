"""Resource requests and limits of containers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from allot.api.quantity import Quantity, QuantityError, quantity_from_json
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import label_key_problems

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
STANDARD_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
QUOTA_RESOURCES: Final = STANDARD_RESOURCES | {
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage",
    *(f"{kind}.{name}" for kind in ("requests", "limits") for name in sorted(STANDARD_RESOURCES)),
}  # fmt: skip
"""The names without a domain that a quota can bound."""
_KNOWN_RESOURCES: Final = QUOTA_RESOURCES | {"storage"}
HUGE_PAGES: Final = "hugepages-"
OF_KUBERNETES: Final = "kubernetes.io/"
QUOTA_PREFIX: Final = "requests."


def is_extended(name: str) -> bool:
    """Whether it is an extended resource."""
    return "/" in name and OF_KUBERNETES not in name


class ResourceNames(Enum):
    """Whose resources they are: fewer are for whole pods."""

    OF_CONTAINERS = "containers"
    OF_PODS = "pods"


_OF_PODS: Final = ("cpu", HUGE_PAGES, "memory")


def validate_container_resources(
    resources: Mapping[str, Any], path: FieldPath
) -> Iterator[FieldError]:
    yield from validate_resource_requirements(resources, path, ResourceNames.OF_CONTAINERS)


def validate_resource_requirements(
    resources: Mapping[str, Any], path: FieldPath, names: ResourceNames
) -> Iterator[FieldError]:
    """Limits and requests."""
    limits_path, requests_path = path / "limits", path / "requests"
    limits: dict[str, Quantity] = {}
    for name, text in (resources.get("limits") or {}).items():
        yield from _validate_name(name, limits_path @ name, names)
        limit = yield from _validate_amount(name, text, limits_path @ name)
        if limit is not None:
            limits[name] = limit
    for name, text in (resources.get("requests") or {}).items():
        yield from _validate_name(name, requests_path @ name, names)
        request = yield from _validate_amount(name, text, requests_path @ name)
        if request is None:
            continue
        may_be_less = not is_extended(name) and not name.startswith(HUGE_PAGES)
        if name not in limits:
            if not may_be_less and name not in (resources.get("limits") or {}):
                yield required(limits_path, "Limit must be set for non overcommitable resources")
        elif limits[name] < request or (limits[name] != request and not may_be_less):
            relation = "less than or equal" if may_be_less else "equal"
            rule = f"must be {relation} to {name} limit of {limits[name]}"
            yield invalid(requests_path, str(request), rule)
    used = {*(resources.get("limits") or {}), *(resources.get("requests") or {})}
    has_huge_pages = any(name.startswith(HUGE_PAGES) for name in used)
    if has_huge_pages and not used & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")


def _validate_name(name: str, path: FieldPath, names: ResourceNames) -> Iterator[FieldError]:
    problems = label_key_problems(name)
    if problems:
        yield from (invalid(path, name, problem) for problem in problems)
    elif names is ResourceNames.OF_PODS:
        if "/" not in name and not is_known_name(name):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        elif name not in _OF_PODS and not name.startswith(HUGE_PAGES):
            yield not_supported(path, name, _OF_PODS)
    elif "/" not in name:
        yield from validate_standard_name(name, path)
    elif is_extended(name) and (
        name.startswith(QUOTA_PREFIX) or label_key_problems(QUOTA_PREFIX + name)
    ):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def validate_standard_name(
    name: str, path: FieldPath, *, for_container: bool = True
) -> Iterator[FieldError]:
    """A resource name without a domain."""
    if name.startswith(HUGE_PAGES):
        return
    if not is_known_name(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    if for_container and name not in STANDARD_RESOURCES:
        yield invalid(path, name, "must be a standard resource for containers")


def is_known_name(name: str) -> bool:
    """Whether a resource name may have no domain."""
    return name in _KNOWN_RESOURCES or is_huge_pages_quota(name)


def is_huge_pages_quota(name: str) -> bool:
    return name.removeprefix(QUOTA_PREFIX).startswith(HUGE_PAGES)


def _validate_amount(
    name: str, text: Any, path: FieldPath
) -> Generator[FieldError, None, Quantity | None]:
    """Returns the amount, if it is one."""
    try:
        amount = quantity_from_json(text)
    except QuantityError as error:
        yield invalid(path, text, str(error))
        return None
    if amount.sign < 0:
        yield invalid(path, text, NOT_NEGATIVE)
    if is_extended(name) and not amount.is_whole():
        yield invalid(path, text, "must be an integer")
    if name.startswith(HUGE_PAGES) and not _is_multiple(amount, name.removeprefix(HUGE_PAGES)):
        yield invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")
    return amount


def _is_multiple(amount: Quantity, page: str) -> bool:
    try:
        size = quantity_from_json(page)
    except QuantityError:
        return True  # a name that says no size
    if not amount:
        return True
    return (
        size.sign > 0
        and amount.sign > 0
        and amount.is_whole()
        and not amount.value() % size.value()
    )
