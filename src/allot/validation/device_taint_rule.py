"""DeviceTaintRule: which devices get which taint, and how eviction is going."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.classes import DeviceTaintRule, DeviceTaintSelector
from allot.validation.conditions import validate_conditions
from allot.validation.fields import FieldError, FieldPath
from allot.validation.metadata import validate_metadata, validate_metadata_update
from allot.validation.names import validate_driver_name, validate_label, validate_pool_name
from allot.validation.resource_claim import SPEC
from allot.validation.tolerations import validate_taint

MAX_CONDITIONS: Final = 8


def validate_taint_rule(rule: DeviceTaintRule) -> Iterator[FieldError]:
    yield from validate_metadata(rule.metadata, namespaced=False)
    yield from _validate_spec(rule, None)


def validate_taint_rule_update(new: DeviceTaintRule, old: DeviceTaintRule) -> Iterator[FieldError]:
    yield from validate_metadata_update(new.metadata, old.metadata)
    yield from _validate_spec(new, old)


def validate_taint_rule_status_update(
    new: DeviceTaintRule, old: DeviceTaintRule
) -> Iterator[FieldError]:
    yield from validate_metadata_update(new.metadata, old.metadata)
    yield from validate_conditions(
        new.status.conditions, FieldPath("status") / "conditions", MAX_CONDITIONS
    )


def _validate_spec(rule: DeviceTaintRule, old: DeviceTaintRule | None) -> Iterator[FieldError]:
    selector = rule.spec.device_selector
    if selector is not None:
        yield from _validate_selector(selector, SPEC / "deviceSelector")
    stored_effect = old.spec.taint.effect if old else None
    yield from validate_taint(rule.spec.taint, SPEC / "taint", stored_effect=stored_effect)


def _validate_selector(selector: DeviceTaintSelector, path: FieldPath) -> Iterator[FieldError]:
    if selector.driver is not None:
        yield from validate_driver_name(selector.driver, path / "driver")
    if selector.pool is not None:
        yield from validate_pool_name(selector.pool, path / "pool")
    if selector.device is not None:
        yield from validate_label(selector.device, path / "device")
