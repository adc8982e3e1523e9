"""Constraints between the devices of a claim: what must match, what must be distinct.

A constraint keeps what its devices have in common so far, newest last, so that the search can undo
the device it added last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from allot.allocation.attributes import AttributeSet
from allot.api.claims import DeviceConstraint


class Constraint(ABC):
    """A constraint and the values of the devices picked under it."""

    is_match: bool
    """Whether this is `matchAttribute`; else `distinctAttribute`."""

    def __init__(self, spec: DeviceConstraint, attribute: str, *, lists: bool) -> None:
        self.spec = spec
        self.attribute = attribute
        self.lists = lists
        """Whether attributes may be lists (KEP-5491)."""
        self.present: list[AttributeSet] = []

    def applies_to(self, request: str, subrequest: str) -> bool:
        """Whether the devices of a request, or of one of its alternatives, are subject to it."""
        names = self.spec.requests
        return (
            not names
            or request in names
            or (bool(subrequest) and f"{request}/{subrequest}" in names)
        )

    @abstractmethod
    def admits(self, value: AttributeSet) -> bool:
        """Whether a device with this value can be added."""

    @abstractmethod
    def add(self, value: AttributeSet) -> None: ...

    def remove_last(self) -> None:
        self.present.pop()

    @abstractmethod
    def state(self) -> object:
        """What decides which devices can still be added, in a form that can be compared."""


class Match(Constraint):
    """All devices have a value in common. `present` holds what the devices so far share."""

    is_match = True

    def admits(self, value: AttributeSet) -> bool:
        if self.lists and not value.values:
            return False
        if not self.present:
            return True
        shared = self.present[-1]
        if self.lists:
            return shared.kind == value.kind and not shared.values.isdisjoint(value.values)
        return not value.is_list and shared == value

    def add(self, value: AttributeSet) -> None:
        if self.present and self.lists:
            value = value._replace(values=self.present[-1].values & value.values)
        self.present.append(value)

    def state(self) -> object:
        if not self.present:
            return None
        shared = self.present[-1]
        return (shared.kind, shared.values) if self.lists else shared


class Distinct(Constraint):
    """No two devices have a value in common."""

    is_match = False

    def __init__(self, spec: DeviceConstraint, attribute: str, *, lists: bool) -> None:
        super().__init__(spec, attribute, lists=lists)
        self._values_by_kind: dict[str, set[int | str]] = {}

    def admits(self, value: AttributeSet) -> bool:
        if self.lists:
            taken = self._values_by_kind.get(value.kind)
            return bool(value.values) and (not taken or taken.isdisjoint(value.values))
        return not self.present or not (value.is_list or value in self.present)

    def add(self, value: AttributeSet) -> None:
        self.present.append(value)
        if self.lists:
            self._values_by_kind.setdefault(value.kind, set()).update(value.values)

    def remove_last(self) -> None:
        value = self.present.pop()
        if self.lists:
            # It was admitted because it shares no value with the others: remove all its values.
            self._values_by_kind[value.kind] -= value.values

    def state(self) -> object:
        return frozenset(self.present)
