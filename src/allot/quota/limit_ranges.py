"""What LimitRanges say about one pod or claim: defaults of its containers, and constraints it breaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from allot.api.quantity import Quantity
from allot.api.raw import RawObject
from allot.quota.amounts import Amounts, read_amounts
from allot.quota.pods import peak_resources

ANNOTATION: Final = "kubernetes.io/limit-ranger"
CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_MAX_MILLI: Final = (2**63 - 1) // 1000
MAX_NOTES: Final = 256 * 1024
"""Characters of notes about defaults. They become an annotation: with longer ones a pod is invalid anyway."""
MAX_CHECKS: Final = 1_000_000
"""How often the resources of containers are compared with limits for one pod."""
TOO_MANY: Final = (
    "the pod has too many containers to be checked against all limits of its namespace"
)
Json = dict[str, Any]


class TooManyChecksError(Exception):
    """Containers and limits are too many to be compared."""


class Filled(NamedTuple):
    """A pod with defaults, and how many amounts were added."""

    pod: RawObject
    added: int


# --- defaults ---


def with_default_resources(pod: RawObject, ranges: Sequence[RawObject]) -> Filled:
    """The pod with the default limits and requests of its containers, and an annotation that says so.

    When the annotation is too long for a pod, the containers that are left stay as they are.
    """
    notes = _Notes()
    changed = pod
    for limits, requests in map(_defaults, ranges):
        if not limits and not requests:
            continue
        for field, called in (("containers", "container"), ("initContainers", "init container")):
            containers = changed.get("spec", field, default=[])
            filled = [_filled(each, limits, requests, called, notes) for each in containers]
            if filled != containers:
                changed = changed.with_value(filled, "spec", field)
    if not notes.texts:
        return Filled(pod, 0)
    annotations = changed.get("metadata", "annotations", default={})
    annotated = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes.texts)}"}
    return Filled(changed.with_value(annotated, "metadata", "annotations"), notes.added)


class _Notes:
    """What was added to which containers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.added = 0
        self._length = 0

    @property
    def is_full(self) -> bool:
        return self._length > MAX_NOTES

    def add(self, names: Iterable[str], rest: str) -> None:
        listed = sorted(names)
        self.texts.append(f"{', '.join(listed)} {rest}")
        self.added += len(listed)
        self._length += len(self.texts[-1])


def _defaults(limit_range: RawObject) -> tuple[Json, Json]:
    limits: Json = {}
    requests: Json = {}
    for item in _items(limit_range, CONTAINER):
        limits |= item.get("default") or {}
        requests |= item.get("defaultRequest") or {}
    return limits, requests


def _filled(container: Json, limits: Json, requests: Json, called: str, notes: _Notes) -> Json:
    if notes.is_full:
        return container
    resources: Json = container.get("resources") or {}
    filled = dict(resources)
    for what, wanted in (("requests", requests), ("limits", limits)):
        present = resources.get(what) or {}
        missing = {name: value for name, value in wanted.items() if name not in present}
        if missing:
            filled[what] = {**present, **missing}
            kind = what.removesuffix("s")
            notes.add(missing, f"{kind} for {called} {container.get('name', '')}")
    return container if filled == resources else {**container, "resources": filled}


# --- constraints ---


def pod_problems(pod: RawObject, ranges: Sequence[RawObject]) -> list[str]:
    """The constraints that a pod or one of its containers breaks; `TooManyChecksError` if it cannot be said in time."""
    containers = [
        _Asked.of(container.get("resources") or {})
        for field in ("containers", "initContainers")
        for container in pod.get("spec", field, default=[])
    ]
    whole: list[_Asked] = []
    problems: list[str] = []
    left = MAX_CHECKS
    for item in chain.from_iterable(map(_items, ranges)):
        checked: Sequence[_Asked] = ()
        if item.get("type") == CONTAINER:
            checked = containers
        elif item.get("type") == POD:
            whole = whole or [
                _Asked(peak_resources(pod, "requests"), peak_resources(pod, "limits"))
            ]
            checked = whole
        bounds = _Bounds.of(item)
        left -= len(checked) * bounds.checks
        if left < 0:
            raise TooManyChecksError(TOO_MANY)
        for asked in checked:
            problems += _problems(bounds, item["type"], asked)
    return problems


class _Asked(NamedTuple):
    """What a container, or a pod, asks for."""

    requests: Amounts
    limits: Amounts

    @classmethod
    def of(cls, resources: Mapping[str, Any]) -> _Asked:
        return cls(read_amounts(resources.get("requests")), read_amounts(resources.get("limits")))


class _Bounds(NamedTuple):
    """What an item of a LimitRange demands, by resource in order."""

    least: Sequence[tuple[str, Quantity]]
    most: Sequence[tuple[str, Quantity]]
    ratios: Sequence[tuple[str, Quantity]]

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> _Bounds:
        kinds = ("min", "max", "maxLimitRequestRatio")
        return cls(*(sorted(read_amounts(item.get(kind)).items()) for kind in kinds))

    @property
    def checks(self) -> int:
        """How many comparisons they are for one container."""
        return 1 + sum(map(len, self))


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


def _problems(bounds: _Bounds, what: str, asked: _Asked) -> Iterator[str]:
    requests, limits = asked
    for name, least in bounds.least:
        rule = f"minimum {name} usage per {what} is {least}"
        request, limit = requests.get(name), limits.get(name)
        if request is None or request < least:
            yield from _out_of_range(rule, request, least, is_minimum=True)
        elif limit is not None and limit < least:
            yield f"{rule}, but limit is {limit}"
    for name, most in bounds.most:
        rule = f"maximum {name} usage per {what} is {most}"
        request, limit = requests.get(name), limits.get(name)
        if limit is None:
            yield f"{rule}.  No limit is specified"
        elif limit > most:
            yield f"{rule}, but limit is {limit}"
        elif request is not None and request > most:
            yield f"{rule}, but request is {request}"
    for name, ratio in bounds.ratios:
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
