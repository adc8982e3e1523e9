"""Every device of a cluster: where it is, what it is, and its state.

free        can be allocated
held        a claim holds it
shared      claims hold shares of it; `remaining` is what is left (KEP-5075)
waiting     held, and its binding conditions are not True yet (KEP-5007)
tainted     not held, and a taint keeps claims without a toleration away (KEP-5055)
blocked     not held, but counters that it shares with other devices are used up (KEP-4815)
unusable    its pool is incomplete or invalid
unpublished a claim holds it, and no slice publishes it any more
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.pools import CounterBudget, PoolId
from allot.allocation.search.candidates import LazySelector
from allot.allocation.taints import PoolTaintRules
from allot.api.base import ApiObject, always
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.identities import DeviceId
from allot.api.pool_status import PoolStatus
from allot.api.quantity import Quantity
from allot.api.slices import Device, ResourceSlice
from allot.client import resources
from allot.controllers.pool_status import (
    CountedDevice,
    DeviceAvailability,
    PoolAvailability,
    newest_slices,
    pool_availability,
    pool_status,
)
from allot.controllers.pool_status.partitions import counters_left
from allot.features import DEVICE_TAINT_RULES
from allot.questions.class_names import UnknownClassError
from allot.questions.device_holders import DeviceHolders, Holder
from allot.questions.observed_cluster import ObservedCluster

_MODEL_NAMES: Final = ("productName", "model", "product", "type", "profile")
"""Attributes that name what a device is, the most telling first."""


ClassSelection = Callable[[ResourceSlice, Device], bool]
"""Whether a class selects a device of a slice."""


class DeviceUse(StrEnum):
    """The state of a device; exactly one."""

    FREE = "free"
    HELD = "held"
    SHARED = "shared"
    WAITING = "waiting"
    TAINTED = "tainted"
    BLOCKED = "blocked"
    UNUSABLE = "unusable"
    UNPUBLISHED = "unpublished"


HELD_STATES: Final = frozenset(
    {DeviceUse.HELD, DeviceUse.SHARED, DeviceUse.WAITING, DeviceUse.UNPUBLISHED}
)


class DeviceRow(ApiObject, frozen=True):
    """One device."""

    driver: str = always(str)
    pool: str = always(str)
    device: str = always(str)
    node: str = always(str)
    """Empty if it is not on one node."""
    model: str = always(str)
    state: DeviceUse = always(lambda: DeviceUse.FREE)
    held_by: tuple[Holder, ...] = always(tuple)
    remaining: dict[str, str] = always(dict)
    """Of a device that can be shared: the capacity that is left, by name."""
    taints: tuple[str, ...] = ()
    reason: str = ""
    """Why it is unusable or blocked."""

    @property
    def id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)

    @property
    def is_free(self) -> bool:
        """Whether a claim could get it, or a share of it."""
        return self.state is DeviceUse.FREE or (
            self.state is DeviceUse.SHARED and any(map(_is_positive, self.remaining.values()))
        )

    @property
    def is_held(self) -> bool:
        return self.state in HELD_STATES


class DeviceFilter(NamedTuple):
    """Which devices to list; None: all."""

    driver: str | None = None
    pool: str | None = None
    node: str | None = None
    class_name: str | None = None
    free: bool = False
    held: bool = False

    def takes(self, row: DeviceRow) -> bool:
        """Whether the row is listed, as far as the row itself can tell."""
        for name, value in (
            (self.driver, row.driver),
            (self.pool, row.pool),
            (self.node, row.node),
        ):
            if name is not None and name != value:
                return False
        if not (self.free or self.held):
            return True
        return (self.free and row.is_free) or (self.held and row.is_held)


class DeviceList(ApiObject, frozen=True):
    """All devices, by driver, pool and name, and their number by state."""

    devices: tuple[DeviceRow, ...] = always(tuple)
    states: dict[str, int] = always(dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: tuple[DeviceRow, ...], notes: tuple[str, ...]) -> DeviceList:
        """These rows, counted."""
        states = Counter(str(row.state) for row in rows)
        return cls(rows, {state: states[state] for state in DeviceUse if states[state]}, notes)


def list_devices(cluster: ObservedCluster, wanted: DeviceFilter = DeviceFilter()) -> DeviceList:  # noqa: B008 - a value
    """The devices that pass the filter; `UnknownClassError`."""
    rows = tuple(row for row in _rows(cluster, wanted) if wanted.takes(row))
    return DeviceList.of(rows, cluster.notes)


class DevicesByClass:
    """All devices of a cluster, of which those of each class can be listed without counting them anew."""

    def __init__(self, cluster: ObservedCluster) -> None:
        self._cluster = cluster
        claims = DeviceHolders(cluster.gates, cluster.objects.of(resources.RESOURCE_CLAIMS))
        unpublished = claims.devices_held()
        self._published: list[tuple[CountedDevice, DeviceRow]] = []
        for pool in _pools(cluster, claims, DeviceFilter()):
            for counted in pool.counted:
                unpublished.pop(counted.id, None)
                self._published.append((counted, pool.row(counted)))
        self._published.sort(key=lambda pair: pair[1].id)
        rows = [row for _, row in self._published]
        rows += (unpublished_row(id_, claims) for id_ in unpublished)
        self.list = DeviceList.of(tuple(sorted(rows, key=lambda row: row.id)), cluster.notes)

    def of_class(self, class_name: str) -> tuple[DeviceRow, ...]:
        """The devices that a class selects, by driver, pool and name; `UnknownClassError`."""
        selects = class_selection(known_class(self._cluster, class_name))
        return tuple(
            row for counted, row in self._published if selects(counted.slice, counted.device)
        )


def _pools(
    cluster: ObservedCluster, claims: DeviceHolders, wanted: DeviceFilter
) -> Iterator[PoolDevices]:
    objects = cluster.objects
    has_rules = DEVICE_TAINT_RULES in cluster.gates
    rules = objects.of(resources.DEVICE_TAINT_RULES) if has_rules else ()
    slices = newest_slices(objects.of(resources.RESOURCE_SLICES), wanted.driver, wanted.pool)
    for pool, published in slices.items():
        yield PoolDevices(pool, published, claims, rules)


def _rows(cluster: ObservedCluster, wanted: DeviceFilter) -> Iterator[DeviceRow]:
    claims = DeviceHolders(cluster.gates, cluster.objects.of(resources.RESOURCE_CLAIMS))
    selects = _selection(cluster, wanted.class_name)
    unpublished = claims.devices_held()
    rows: list[DeviceRow] = []
    for devices in _pools(cluster, claims, wanted):
        for counted in devices.counted:
            unpublished.pop(counted.id, None)
            if selects is None or selects(counted.slice, counted.device):
                rows.append(devices.row(counted))
    if wanted.class_name is None:
        rows += (
            unpublished_row(id_, claims)
            for id_ in unpublished
            if wanted.driver in (None, id_.driver) and wanted.pool in (None, id_.pool)
        )
    yield from sorted(rows, key=lambda row: row.id)


class DeviceState(NamedTuple):
    """The state of a device, who holds it, and why it is unusable or blocked."""

    use: DeviceUse
    holders: tuple[Holder, ...] = ()
    reason: str = ""


FREE_DEVICE: Final = DeviceState(DeviceUse.FREE)


class PoolDevices:
    """The devices of a pool's newest slices, at one moment."""

    def __init__(
        self,
        pool: PoolId,
        slices: tuple[ResourceSlice, ...],
        claims: DeviceHolders,
        rules: Sequence[DeviceTaintRule] = (),
    ) -> None:
        census = pool_availability(pool, slices, claims.ledger, rules)
        self.counted = census.devices
        self.node_name = census.node_name or ""
        """The node of all devices; empty if they are not all on one."""
        self._claims = claims
        self._rules = PoolTaintRules(rules, *pool)
        self._problem = _problem(
            census, pool_status(census, claims.ledger, None, claims.ledger.gates)
        )
        self._left = counters_left(census)

    def node_of(self, counted: CountedDevice) -> str:
        """The node of a device; empty if it is not on one node."""
        return self.node_name or counted.node_name

    def state(self, counted: CountedDevice, id_: DeviceId) -> DeviceState:
        if counted.state is DeviceAvailability.ALLOCATED:
            holders = self._claims.holders(id_)
            if any(holder.waits_for for holder in holders):
                return DeviceState(DeviceUse.WAITING, holders)
            is_shared = self._claims.ledger.has_share(id_)
            return DeviceState(DeviceUse.SHARED if is_shared else DeviceUse.HELD, holders)
        if self._problem:
            return DeviceState(DeviceUse.UNUSABLE, reason=self._problem)
        if counted.is_tainted:
            return DeviceState(DeviceUse.TAINTED)
        device = counted.device
        if device.consumes_counters and (lacking := _lacking_counters(device, self._left)):
            return DeviceState(DeviceUse.BLOCKED, reason=f"used up: {', '.join(lacking)}")
        return FREE_DEVICE

    def row(self, counted: CountedDevice) -> DeviceRow:
        """All about a device."""
        id_, device = counted.id, counted.device
        state = self.state(counted, id_)
        return DeviceRow(
            *id_,
            node=self.node_of(counted),
            model=model_of(device),
            state=state.use,
            held_by=state.holders,
            remaining=self._claims.remaining(id_, device),
            taints=tuple(
                f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
                for taint in self._rules.blocking_taints(device)
            ),
            reason=state.reason,
        )


def unpublished_row(device: DeviceId, claims: DeviceHolders) -> DeviceRow:
    """A device that claims hold and no slice publishes."""
    return DeviceRow(*device, state=DeviceUse.UNPUBLISHED, held_by=claims.holders(device))


def _problem(census: PoolAvailability, status: PoolStatus) -> str:
    """Why allocation refuses the pool; empty if it does not."""
    has_free = any(each.state is DeviceAvailability.AVAILABLE for each in census.devices)
    is_refused = census.is_incomplete or (has_free and status.available_devices == 0)
    return (status.validation_error or "the pool is refused") if is_refused else ""


def model_of(device: Device) -> str:
    """What the device is, by the attribute that usually tells; empty if none does."""
    named = {
        short: value
        for name, value in sorted(device.attributes.items())
        if (short := name.rpartition("/")[2]) in _MODEL_NAMES
    }
    found = (named[name].string for name in _MODEL_NAMES if name in named)
    return next(filter(None, found), "")


def _lacking_counters(device: Device, left: CounterBudget) -> tuple[str, ...]:
    return tuple(
        f"{use.counter_set}/{name}"
        for use in device.consumes_counters
        for name, counter in use.counters.items()
        if left.get(use.counter_set, {}).get(name, 0) < counter.value.nanos
    )


def _selection(cluster: ObservedCluster, class_name: str | None) -> ClassSelection | None:
    return None if class_name is None else class_selection(known_class(cluster, class_name))


def known_class(cluster: ObservedCluster, class_name: str) -> DeviceClass:
    """The class of this name; `UnknownClassError`."""
    classes = {each.metadata.name: each for each in cluster.objects.of(resources.DEVICE_CLASSES)}
    if class_name not in classes:
        raise UnknownClassError(class_name, classes)
    return classes[class_name]


def class_selection(class_: DeviceClass) -> ClassSelection:
    """Whether a class selects a device; devices on which an expression fails are not selected."""
    selectors = [
        LazySelector(f"selector {number}", selector)
        for number, selector in enumerate(class_.spec.selectors, 1)
    ]

    def selects(slice_: ResourceSlice, device: Device) -> bool:
        candidate = PoolDevice(slice_, device)
        try:
            return all(selector.matches(candidate) for selector in selectors)
        except AllocationError:
            return False

    return selects


def _is_positive(text: str) -> bool:
    return Quantity.parse(text).nanos > 0


def pools_of(rows: Iterable[DeviceRow]) -> dict[PoolId, list[DeviceRow]]:
    """The rows by pool."""
    found: dict[PoolId, list[DeviceRow]] = {}
    for row in rows:
        found.setdefault(PoolId(row.driver, row.pool), []).append(row)
    return found
