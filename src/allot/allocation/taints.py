"""Device taints: those that block allocation, published or added by DeviceTaintRules (KEP-5055).

Which toleration covers which taint is in `api.taints`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.classes import DeviceTaintRule
from allot.api.identities import DeviceId
from allot.api.resource import NO_EXECUTE, NO_SCHEDULE, DeviceTaint

_BLOCKING_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)


def blocking_taints(
    device: DeviceId, own: Iterable[DeviceTaint], rules: Iterable[DeviceTaintRule]
) -> tuple[DeviceTaint, ...]:
    """The taints that must be tolerated: the device's own, then those that rules add."""
    added = (rule.spec.taint for rule in rules if selects(rule, device))
    # Effects we do not know, and "None", only inform.
    return tuple(taint for taint in (*own, *added) if taint.effect in _BLOCKING_EFFECTS)


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
