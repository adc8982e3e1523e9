"""DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.base import replace
from allot.api.classes import DeviceTaintRule, DeviceTaintRuleStatus
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.generations import with_generation
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import StatusStrategy, metadata_for_status_update
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.validation.device_taint_rule import (
    validate_taint_rule,
    validate_taint_rule_status_update,
    validate_taint_rule_update,
)
from allot.validation.fields import FieldError


class DeviceTaintRuleStrategy(StatusStrategy[DeviceTaintRule]):
    """A taint that changes its effect counts as added anew."""

    def prepare_create(self, new: DeviceTaintRule, request: WriteRequest) -> DeviceTaintRule:
        return with_generation(replace(new, status=DeviceTaintRuleStatus()), 1)

    def validate_create(self, new: DeviceTaintRule, request: WriteRequest) -> Iterator[FieldError]:
        return validate_taint_rule(new)

    def prepare_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> DeviceTaintRule:
        taint, before = new.spec.taint, old.spec.taint
        if taint.effect != before.effect and taint.time_added == before.time_added:
            taint = replace(taint, time_added=request.now)
        new = replace(new, spec=replace(new.spec, taint=taint), status=old.status)
        return with_generation(new, old.metadata.generation + (new.spec != old.spec))

    def validate_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_taint_rule_update(new, old)

    def prepare_status_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> DeviceTaintRule:
        metadata = metadata_for_status_update(new.metadata, old.metadata)
        return replace(new, metadata=metadata, spec=old.spec)

    def validate_status_update(
        self, new: DeviceTaintRule, old: DeviceTaintRule, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_taint_rule_status_update(new, old)

    def accepts_unconditional_update(self, version: str) -> bool:
        return version != "v1"


def _row(rule: DeviceTaintRule, age: Age) -> list[Cell]:
    metadata, taint = rule.metadata, rule.spec.taint
    return [
        metadata.name,
        taint.key,
        taint.value,
        taint.effect,
        age(taint.time_added),
        age(metadata.creation_timestamp),
    ]


DEFINITION: Final = KindDefinition(
    strategy=DeviceTaintRuleStrategy,
    table=Table(
        (NAME, Column("Key"), Column("Value"), Column("Effect"), Column("TimeAdded"), AGE), _row
    ),
    subresources=(STATUS,),
    plain_tables=("status",),
    returns_deleted_in=("v1beta2", "v1alpha3"),
)
