"""Candidates: the rules about a single device and request, independent of other picks.

Every answer is computed when it is first needed, because *when* an expression is evaluated decides
whether its error surfaces. Results of selectors and attributes are cached with the slice
(`slice_cache`), for later searches too; the rest is cached for the attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar

from allot.allocation.allocated_devices import Ledger
from allot.allocation.attributes import NOT_PUBLISHED, AttributeSet, attribute_set
from allot.allocation.capacity import CapacityError, Consumption, consumption
from allot.allocation.constraints import Constraint
from allot.allocation.devices import PoolDevice
from allot.allocation.errors import (
    AllocationError,
    EvaluationDeadlineError,
    ExpressionError,
    UnusablePoolError,
)
from allot.allocation.inventory import NodeView
from allot.allocation.node_selectors import selects_node
from allot.allocation.problem import TargetNode
from allot.allocation.requests import Alternative
from allot.allocation.search.work_meter import WorkMeter
from allot.api.claims import DeviceDerivedAttribute
from allot.api.identities import DeviceId
from allot.api.resource import DeviceSelector, DeviceTaint
from allot.api.taints import first_untolerated
from allot.cel import (
    CelCompileError,
    CelEvaluationError,
    DerivedAttribute,
    Origin,
    Selector,
    compile_derived,
    compile_selector,
)
from allot.deadline import Deadline, DeadlineExceededError, no_deadline
from allot.features import (
    BINDING_CONDITIONS,
    CONSUMABLE_CAPACITY,
    DERIVED_ATTRIBUTES,
    DEVICE_TAINTS,
    FRACTIONAL_CAPACITY_RANGE,
    OPTIONAL_NODE_OPERATIONS,
    PARTITIONABLE_DEVICES,
    FeatureGates,
)
from allot.rules import (
    BAD_CAPACITY_IS_NOT_ELIGIBLE,
    IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF,
    SHARES_HOLD_DEDICATED_DEVICES,
)

_FEW_SELECTORS: Final = 2
"""Up to so many selectors, their work is included in the work of checking a device."""
_SELECTOR_WORK: Final = 8
"""Units of work to look up a cached result; evaluation meters itself."""

_DRIVER: Final = (("driver",),)

Value = TypeVar("Value")

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue())"
    " or guarding the check with has() for optional fields"
)


class LazySelector:
    """A selector, compiled when the first device is checked."""

    __slots__ = (
        "_by_driver",
        "_program",
        "class_name",
        "evaluations",
        "expression",
        "index",
        "key",
        "place",
    )

    def __init__(
        self, place: str, selector: DeviceSelector, index: int = 0, class_name: str = ""
    ) -> None:
        """`class_name` is empty for a selector of the request itself."""
        self.place = place
        self.index = index
        self.class_name = class_name
        self.expression = selector.cel.expression if selector.cel is not None else None
        self.key = self.expression or ""
        """Its row in the caches of slices."""
        self.evaluations = 0
        """How often it was evaluated, and not looked up."""
        self._by_driver: dict[str, bool] = {}
        """Results of an expression that reads nothing but the driver."""
        self._program: Selector | None = None

    def matches(self, device: PoolDevice, deadline: Deadline = no_deadline) -> bool:
        """Whether the device is selected; `AllocationError` if the expression fails."""
        row = device.cache.selected.get(self.key)
        known = row[device.number] if row is not None else None
        if known is None:
            known = self._evaluated(device, deadline)
            device.cache.selected.remember(self.key, device.number, known)
            self.evaluations += 1
        return known

    def _evaluated(self, device: PoolDevice, deadline: Deadline) -> bool:
        if self._program is None:
            self._program = self._compiled()
            deadline()
        # Most selectors of classes: such devices need not be prepared for CEL.
        is_about_driver = self._program.reads == _DRIVER and device.has_plain_attributes
        if is_about_driver and device.id.driver in self._by_driver:
            return self._by_driver[device.id.driver]
        try:
            matches = self._program.matches(device.prepared, deadline)
            if is_about_driver:
                self._by_driver[device.id.driver] = matches
            return matches
        except CelEvaluationError as error:
            hint = _HINT if error.text.startswith("no such key: ") else ""
            raise ExpressionError(
                f"{self.place} on device {device.id}: CEL runtime error: {error.text}{hint}",
                self.expression or "",
                device.id,
                error.text,
            ) from None
        except DeadlineExceededError:
            raise EvaluationDeadlineError(self.expression or "", device.id) from None

    @property
    def reads(self) -> tuple[tuple[str, ...], ...]:
        """The parts of a device that the expression reads."""
        if self._program is None:
            self._program = self._compiled()
        return self._program.reads

    def _compiled(self) -> Selector:
        if self.expression is None:
            raise AllocationError("CEL expression empty (unsupported selector type?)", self.place)
        try:
            return compile_selector(self.expression, Origin.STORED)
        except CelCompileError as error:
            raise AllocationError(f"CEL compile error: {error.text}", self.place) from None


class CandidateRules:
    """The rules for single devices of one node."""

    def __init__(
        self,
        node: TargetNode,
        view: NodeView,
        ledger: Ledger,
        gates: FeatureGates,
        meter: WorkMeter | None = None,
        avoided: frozenset[DeviceId] = frozenset(),
    ) -> None:
        self.meter = meter or WorkMeter()
        self.avoided = avoided
        self.node = node
        self.view = view
        self.devices = view.devices
        self.ledger = ledger
        self.consumable = CONSUMABLE_CAPACITY in gates
        # KEP-5075: a share stays allocated when its device stops being shareable.
        self.shares_in_the_way: Collection[DeviceId] = (
            ledger.shared if SHARES_HOLD_DEDICATED_DEVICES in gates else ()
        )
        self._skips_bad_capacity = BAD_CAPACITY_IS_NOT_ELIGIBLE in gates
        # KEP-6080: while the gate is off, only static attributes are there, which have domains.
        self._has_bare_names = (
            DERIVED_ATTRIBUTES in gates or IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF not in gates
        )
        self._fractional = FRACTIONAL_CAPACITY_RANGE in gates
        self._binding_conditions = BINDING_CONDITIONS in gates
        self._taints = DEVICE_TAINTS in gates
        self.partitionable = PARTITIONABLE_DEVICES in gates
        self._may_skip_operations = (
            OPTIONAL_NODE_OPERATIONS in gates and OPTIONAL_NODE_OPERATIONS in node.declared_features
        )
        self._selectable: dict[tuple[Alternative, int], bool | LazySelector] = {}
        self._consumption: dict[tuple[Alternative, int], Consumption | None] = {}
        self._selectors: dict[Alternative, tuple[LazySelector, ...]] = {}
        self._untolerated: dict[tuple[Alternative, int], DeviceTaint | None] = {}
        self._derived_programs: dict[str, DerivedAttribute] = {}
        self._derivations = 0

    # --- mode All ---

    def all_devices(self, alternative: Alternative) -> tuple[int, ...]:
        found: list[int] = []
        self.meter.alternative = alternative
        for pool, places in self.view.places():
            self.meter.spend(1)
            if not pool.is_usable:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise UnusablePoolError(
                    f"asks for all devices, but resource pool {pool.id} is currently {state}",
                    alternative.place,
                )
            at = 0
            while at < len(pool.devices):
                self.meter.spend(2)
                index, device = places[at], pool.devices[at]
                if device.number == 0 and (
                    refused := self.refused_from(alternative, pool.devices, at)
                ):
                    at += refused
                    continue
                at += 1
                if self.is_selectable(alternative, index) and (
                    not self.consumable or self._could_ever_fit(alternative, index, device)
                ):
                    found.append(index)
        found.sort()
        return tuple(found)

    def _could_ever_fit(self, alternative: Alternative, index: int, device: PoolDevice) -> bool:
        consumed = self.consumption(alternative, index, device.id.device)
        return consumed is not None and all(
            amount <= device.device.capacity[name].value for name, amount in consumed.items()
        )

    # --- selectors ---

    def refused_from(self, alternative: Alternative, devices: Sequence[PoolDevice], at: int) -> int:
        """How many devices, from this position on, are known to be refused: the rest of a slice, or none.

        A claim for few devices would otherwise look at all others on each decision, one by one.
        """
        device = devices[at]
        rows = device.cache.selected
        for selector in self.selectors(alternative):
            row = rows.get(selector.key)
            if row is None:
                return 0
            if row.count(False) == len(row):
                left = len(row) - device.number
                if at + left > len(devices):
                    return 0
                last = devices[at + left - 1]
                # The devices of a slice may be apart: those that are ready come first.
                is_whole = last.cache is device.cache and last.number == len(row) - 1
                return left if is_whole else 0
            if None in row:
                return 0
        return 0

    @property
    def evaluations(self) -> int:
        """How often expressions were evaluated whose results are kept."""
        selectors = (each for some in self._selectors.values() for each in some)
        return sum([selector.evaluations for selector in selectors], self._derivations)

    def is_selectable(self, alternative: Alternative, index: int) -> bool:
        """Whether class, request and the device's own node selection admit the device."""
        key = (alternative, index)
        known = self._selectable.get(key)
        if known is None:
            known = self._selectable[key] = self._selected(alternative, self.devices[index])
        return known is True

    def _selected(self, alternative: Alternative, device: PoolDevice) -> bool | LazySelector:
        """True or False, or the selector that refuses the device."""
        if not self._binding_conditions and device.device.binding_conditions:
            return False
        meter = self.meter
        selectors = self.selectors(alternative)
        if len(selectors) > _FEW_SELECTORS:
            meter.spend(_SELECTOR_WORK * len(selectors))
        for selector in selectors:
            if not selector.matches(device, meter.deadline):
                return selector
        if not device.selects_node_itself:
            return True
        own = device.device
        return selects_node(self.node, own.node_name, own.all_nodes, own.node_selector, meter)

    def refused_by(self, alternative: Alternative, index: int) -> LazySelector | None:
        """The selector that refused a device, if one did."""
        known = self._selectable.get((alternative, index))
        return known if isinstance(known, LazySelector) else None

    def selectors(self, alternative: Alternative) -> tuple[LazySelector, ...]:
        """The selectors a device must pass: those of the class, then those of the request."""
        known = self._selectors.get(alternative)
        if known is None:
            class_ = alternative.class_
            known = self._selectors[alternative] = (
                *(
                    LazySelector(
                        f"class {class_.metadata.name}: selector #{index}",
                        selector,
                        index,
                        class_.metadata.name,
                    )
                    for index, selector in enumerate(class_.spec.selectors)
                ),
                *(
                    LazySelector(
                        f"claim {alternative.claim.key}: selector #{index}", selector, index
                    )
                    for index, selector in enumerate(alternative.spec.selectors)
                ),
            )
        return known

    def failing_selector(self, alternative: Alternative, expression: str) -> LazySelector | None:
        """The first selector with this expression; None if the expression derives an attribute."""
        selectors = self.selectors(alternative)
        return next((each for each in selectors if each.expression == expression), None)

    def reads(self, alternative: Alternative, expression: str) -> tuple[tuple[str, ...], ...]:
        """The parts of a device that an expression of the alternative reads, once it is compiled."""
        selector = self.failing_selector(alternative, expression)
        if selector is not None:
            return selector.reads
        return compile_derived(expression, Origin.STORED).reads

    # --- capacity ---

    def consumption(
        self, alternative: Alternative, index: int, shown_as: object = None
    ) -> Consumption | None:
        """What the request consumes of the device; None if the request policies do not allow it."""
        key = (alternative, index)
        if key in self._consumption:
            return self._consumption[key]
        device = self.devices[index]
        try:
            consumed = consumption(
                device.capacity, alternative.capacity, fractional=self._fractional
            )
        except CapacityError as error:
            if not self._skips_bad_capacity:
                raise AllocationError(
                    f"checking capacity for device {shown_as or device.id}: {error}",
                    alternative.place,
                ) from None
            consumed = None
        self._consumption[key] = consumed
        return consumed

    def bad_capacity(self, alternative: Alternative, index: int) -> str:
        """Why the consumption cannot be computed; empty if it can."""
        try:
            consumption(
                self.devices[index].capacity, alternative.capacity, fractional=self._fractional
            )
        except CapacityError as error:
            return str(error)
        return ""

    # --- operations, counters, taints ---

    def supports_operations(self, device: PoolDevice) -> bool:
        """Whether this node can skip the operations that the driver wants skipped."""
        return self._may_skip_operations or not device.skip_node_operations

    def untolerated_taint(self, alternative: Alternative, index: int) -> DeviceTaint | None:
        """The first blocking taint that the request does not tolerate."""
        taints = self.devices[index].taints
        if not taints or not self._taints:
            return None
        key = (alternative, id(taints))  # devices with equal taints often share them
        if key in self._untolerated:
            return self._untolerated[key]
        tolerations = alternative.spec.tolerations
        self.meter.spend(len(taints) * (1 + len(tolerations)))
        taint = first_untolerated(taints, tolerations, comparison_operators=False)
        self._untolerated[key] = taint
        return taint

    # --- attributes ---

    def attribute(
        self, constraint: Constraint, alternative: Alternative, index: int
    ) -> AttributeSet | None:
        """The device's value for a constraint; None if it has none.

        An attribute derived by the request comes first, and an error in it ends the attempt.
        """
        name = constraint.attribute
        device = self.devices[index]
        if alternative.derived:
            derived = alternative.derived.get(name)
            if derived is None:
                derived = _in_domain(alternative.derived, name, device.id.driver)
            if derived is not None:
                row = device.cache.derived.get(derived.expression)
                value = row[device.number] if row is not None else None
                return value or self._derived_value(derived, device)
        if "/" not in name and not self._has_bare_names:
            return None
        row = device.cache.attributes.get(name)
        value = row[device.number] if row is not None else None
        if value is None:
            attributes = device.device.attributes
            attribute = attributes.get(name)
            if attribute is None:
                attribute = _in_domain(attributes, name, device.id.driver)
            value = NOT_PUBLISHED if attribute is None else attribute_set(attribute)
            device.cache.attributes.remember(name, device.number, value)
        return None if value is NOT_PUBLISHED else value

    def _derived_value(self, derived: DeviceDerivedAttribute, device: PoolDevice) -> AttributeSet:
        deadline = self.meter.deadline
        self.meter.spend(_SELECTOR_WORK)
        program = self._derived_programs.get(derived.expression) or self._compiled(derived)
        try:
            value = attribute_set(program.attribute(device.prepared, deadline))
        except CelEvaluationError as error:
            raise ExpressionError(
                f"evaluate derived attribute {derived.name} on device {device.id} failed:"
                f" {error.text}",
                derived.expression,
                device.id,
                error.text,
            ) from None
        except DeadlineExceededError:
            raise EvaluationDeadlineError(derived.expression, device.id) from None
        device.cache.derived.remember(derived.expression, device.number, value)
        self._derivations += 1
        return value

    def _compiled(self, derived: DeviceDerivedAttribute) -> DerivedAttribute:
        try:
            program = compile_derived(derived.expression, Origin.STORED)
        except CelCompileError as error:
            raise AllocationError(
                f"compile derived attribute {derived.name} failed: {error.text}"
            ) from None
        self._derived_programs[derived.expression] = program
        return program


def _in_domain(values: Mapping[str, Value], name: str, driver: str) -> Value | None:
    """The value under the name without its domain: a bare name is in the driver's domain."""
    domain, slash, identifier = name.partition("/")
    return values.get(identifier) if slash and domain == driver else None
