"""Resource requests and limits of containers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final

from allot.api.quantity import Quantity, QuantityError, quantity_from_json
from allot.validation.fields import FieldError, FieldPath, invalid, required
from allot.validation.formats import label_key_problems

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
STANDARD_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_KNOWN_RESOURCES: Final = STANDARD_RESOURCES | {
    "storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
HUGE_PAGES: Final = "hugepages-"
OF_KUBERNETES: Final = "kubernetes.io/"
QUOTA_PREFIX: Final = "requests."


def is_extended(name: str) -> bool:
    """Whether it is an extended resource."""
    return "/" in name and OF_KUBERNETES not in name


def validate_container_resources(
    resources: Mapping[str, Any], path: FieldPath
) -> Iterator[FieldError]:
    limits_path, requests_path = path / "limits", path / "requests"
    limits: dict[str, Quantity] = {}
    for name, text in (resources.get("limits") or {}).items():
        yield from _validate_name(name, limits_path @ name)
        limit = yield from _validate_amount(name, text, limits_path @ name)
        if limit is not None:
            limits[name] = limit
    for name, text in (resources.get("requests") or {}).items():
        yield from _validate_name(name, requests_path @ name)
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


def _validate_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    problems = label_key_problems(name)
    if problems:
        yield from (invalid(path, name, problem) for problem in problems)
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
    if name not in _KNOWN_RESOURCES and not name.startswith((QUOTA_PREFIX, "limits.")):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    if for_container and name not in STANDARD_RESOURCES:
        yield invalid(path, name, "must be a standard resource for containers")


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
    return amount
