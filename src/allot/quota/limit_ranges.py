"""What LimitRanges say about one pod or claim: defaults of its containers, and constraints it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from allot.api.quantity import Quantity
from allot.api.raw import RawObject
from allot.quota.amounts import Amounts, read_amounts
from allot.quota.pods import peak_resources

ANNOTATION: Final = "kubernetes.io/limit-ranger"
CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_MAX_MILLI: Final = (2**63 - 1) // 1000
Json = dict[str, Any]


# --- defaults ---


def with_default_resources(pod: RawObject, ranges: Sequence[RawObject]) -> RawObject:
    """The pod with the default limits and requests of its containers, and an annotation that says so."""
    notes: list[str] = []
    changed = pod
    for limits, requests in map(_defaults, ranges):
        if not limits and not requests:
            continue
        for field, called in (("containers", "container"), ("initContainers", "init container")):
            containers = changed.get("spec", field, default=[])
            filled = [_filled(each, limits, requests, called, notes) for each in containers]
            if filled != containers:
                changed = changed.with_value(filled, "spec", field)
    if not notes:
        return pod
    annotations = changed.get("metadata", "annotations", default={})
    annotated = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    return changed.with_value(annotated, "metadata", "annotations")


def _defaults(limit_range: RawObject) -> tuple[Json, Json]:
    limits: Json = {}
    requests: Json = {}
    for item in _items(limit_range, CONTAINER):
        limits |= item.get("default") or {}
        requests |= item.get("defaultRequest") or {}
    return limits, requests


def _filled(container: Json, limits: Json, requests: Json, called: str, notes: list[str]) -> Json:
    resources: Json = container.get("resources") or {}
    filled = dict(resources)
    for what, wanted in (("requests", requests), ("limits", limits)):
        present = resources.get(what) or {}
        missing = {name: value for name, value in wanted.items() if name not in present}
        if missing:
            filled[what] = {**present, **missing}
            kind = what.removesuffix("s")
            named = ", ".join(sorted(missing))
            notes.append(f"{named} {kind} for {called} {container.get('name', '')}")
    return container if filled == resources else {**container, "resources": filled}


# --- constraints ---


def pod_problems(pod: RawObject, ranges: Sequence[RawObject]) -> list[str]:
    """The constraints that a pod or one of its containers breaks."""
    problems: list[str] = []
    for limit_range in ranges:
        for item in _items(limit_range):
            if item.get("type") == CONTAINER:
                for field in ("containers", "initContainers"):
                    for container in pod.get("spec", field, default=[]):
                        resources = container.get("resources") or {}
                        requests = read_amounts(resources.get("requests"))
                        limits = read_amounts(resources.get("limits"))
                        problems += _problems(item, CONTAINER, requests, limits)
            elif item.get("type") == POD:
                requests = peak_resources(pod, "requests")
                problems += _problems(item, POD, requests, peak_resources(pod, "limits"))
    return problems


def claim_problems(claim: RawObject, ranges: Sequence[RawObject]) -> list[str]:
    """The constraints that a PersistentVolumeClaim breaks."""
    requests = read_amounts(claim.get("spec", "resources", "requests"))
    return [
        problem
        for limit_range in ranges
        for item in _items(limit_range, CLAIM)
        for problem in _claim_problems(item, requests)
    ]


def _claim_problems(item: Mapping[str, Any], requests: Amounts) -> Iterator[str]:
    for name, least in sorted(read_amounts(item.get("min")).items()):
        rule = f"minimum {name} usage per {CLAIM} is {least}"
        yield from _out_of_range(rule, requests.get(name), least, is_minimum=True)
    for name, most in sorted(read_amounts(item.get("max")).items()):
        rule = f"maximum {name} usage per {CLAIM} is {most}"
        yield from _out_of_range(rule, requests.get(name), most, is_minimum=False)


def _out_of_range(
    rule: str, request: Quantity | None, bound: Quantity, *, is_minimum: bool
) -> Iterator[str]:
    if request is None:
        yield f"{rule}.  No request is specified"
    elif request < bound if is_minimum else request > bound:
        yield f"{rule}, but request is {request}"


def _problems(
    item: Mapping[str, Any], what: str, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    for name, least in sorted(read_amounts(item.get("min")).items()):
        rule = f"minimum {name} usage per {what} is {least}"
        request, limit = requests.get(name), limits.get(name)
        if request is None or request < least:
            yield from _out_of_range(rule, request, least, is_minimum=True)
        elif limit is not None and limit < least:
            yield f"{rule}, but limit is {limit}"
    for name, most in sorted(read_amounts(item.get("max")).items()):
        rule = f"maximum {name} usage per {what} is {most}"
        request, limit = requests.get(name), limits.get(name)
        if limit is None:
            yield f"{rule}.  No limit is specified"
        elif limit > most:
            yield f"{rule}, but limit is {limit}"
        elif request is not None and request > most:
            yield f"{rule}, but request is {request}"
    for name, ratio in sorted(read_amounts(item.get("maxLimitRequestRatio")).items()):
        rule = f"{name} max limit to request ratio per {what} is {ratio}"
        yield from _ratio_problems(rule, ratio, requests.get(name), limits.get(name))


def _ratio_problems(
    rule: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    if not request:
        yield f"{rule}, but no request is specified or request is 0"
    elif not limit:
        yield f"{rule}, but no limit is specified or limit is 0"
    else:
        fine = max(request.value(), limit.value()) <= _MAX_MILLI
        part = limit.milli_value() if fine else limit.value()
        whole = request.milli_value() if fine else request.value()
        ratio = part / whole
        if ratio * 1000 > most.milli_value():
            yield f"{rule}, but provided ratio is {ratio:f}"


def _items(limit_range: RawObject, type_: str = "") -> Iterator[Json]:
    for item in limit_range.get("spec", "limits", default=[]):
        if not type_ or item.get("type") == type_:
            yield item
