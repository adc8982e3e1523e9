"""Device taints: those that block allocation, published or added by DeviceTaintRules (KEP-5055).

Which toleration covers which taint is in `api.taints`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.classes import DeviceTaintRule
from allot.api.identities import DeviceId
from allot.api.resource import NO_EXECUTE, NO_SCHEDULE, DeviceTaint
from allot.api.slices import Device

_BLOCKING_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)


class TaintRules:
    """All DeviceTaintRules, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, DeviceTaintRule] = {}
        self._sorted: tuple[DeviceTaintRule, ...] | None = None

    def put(self, rule: DeviceTaintRule) -> tuple[DeviceTaintRule, ...]:
        """Add or replace a rule; what it was before and is now, nothing if it is unchanged."""
        old = self._by_name.get(rule.metadata.name)
        self._by_name[rule.metadata.name] = rule
        self._sorted = None
        if old is not None and old.spec == rule.spec:
            return ()
        return (rule,) if old is None else (old, rule)

    def remove(self, name: str) -> tuple[DeviceTaintRule, ...]:
        """Remove a rule, which is returned if there was one."""
        old = self._by_name.pop(name, None)
        self._sorted = None
        return () if old is None else (old,)

    @property
    def sorted(self) -> tuple[DeviceTaintRule, ...]:
        if self._sorted is None:
            self._sorted = tuple(rule for _, rule in sorted(self._by_name.items()))
        return self._sorted


class PoolTaintRules:
    """The DeviceTaintRules that concern a pool, and the taints that they add to its devices."""

    def __init__(self, rules: Iterable[DeviceTaintRule], driver: str, pool: str) -> None:
        self.rules = tuple(rule for rule in rules if may_select(rule, driver, pool))
        of_all: list[DeviceTaint] = []
        self._of_device: dict[str, list[DeviceTaint]] = {}
        for rule in self.rules:
            taint, selector = rule.spec.taint, rule.spec.device_selector
            assert selector is not None, "it selects devices"
            if _blocks(taint):
                name = selector.device
                taints = of_all if name is None else self._of_device.setdefault(name, [])
                taints.append(taint)
        self._of_all = tuple(of_all)

    def blocking_taints(self, device: Device) -> tuple[DeviceTaint, ...]:
        """The taints that must be tolerated: the device's own, those of rules for all devices, those of rules for this one.

        Devices without taints of their own share one tuple.
        """
        added = self._of_all
        named = self._of_device.get(device.name)
        if named is not None:
            added = (*added, *named)
        return (*filter(_blocks, device.taints), *added) if device.taints else added


NO_TAINT_RULES: Final = PoolTaintRules((), "", "")


def _blocks(taint: DeviceTaint) -> bool:
    """Effects that are not known, and "None", only inform."""
    return taint.effect in _BLOCKING_EFFECTS


def adding_rule(
    device: DeviceId, key: str, value: str, effect: str, rules: Iterable[DeviceTaintRule]
) -> str:
    """The name of the first rule that adds this taint to the device; empty if the device itself has it."""
    for rule in rules:
        taint = rule.spec.taint
        if (taint.key, taint.value, taint.effect) == (key, value, effect) and selects(rule, device):
            return rule.metadata.name
    return ""


def selects(rule: DeviceTaintRule, device: DeviceId) -> bool:
    """Whether the rule is about this device. Without a selector it is about none."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in (None, device.driver)
        and selector.pool in (None, device.pool)
        and selector.device in (None, device.device)
    )


def may_select(rule: DeviceTaintRule, driver: str, pool: str) -> bool:
    """Whether the rule can be about a device of this pool."""
    selector = rule.spec.device_selector
    return (
        selector is not None and selector.driver in (None, driver) and selector.pool in (None, pool)
    )
