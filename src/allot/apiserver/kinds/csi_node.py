"""CSINodes."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, always_written, change, change_each, items
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Table, number
from allot.apiserver.printers.words import age_of
from allot.validation import csi_nodes


def csi_node_defaults(node: Data) -> Data:
    return change(node, "spec", _spec_defaults)


def _spec_defaults(spec: Data) -> Data:
    return change_each(spec, "drivers", lambda driver: always_written(driver, "topologyKeys"))


class CsiNodeStrategy(RawStrategy):
    """CSINodes show lists that are empty as null. Their writer does not own those of the spec."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return _with_null_lists(super().prepare_create(new, request), {})

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        return _with_null_lists(super().prepare_update(new, old, request), _spec(old))


def _with_null_lists(node: RawObject, stored: Data) -> RawObject:
    """Keys that a stored driver has cannot be removed: they stay an empty list, to be refused."""
    with_keys = {
        driver.get("name") for driver in items(stored, "drivers") if driver.get("topologyKeys")
    }

    def with_null_keys(driver: Data) -> Data:
        if driver.get("topologyKeys") != [] or driver.get("name") in with_keys:
            return driver
        return driver | {"topologyKeys": None}

    spec = change_each(_spec(node), "drivers", with_null_keys)
    return node.with_value(spec | {"drivers": spec.get("drivers") or None}, "spec")


def _spec(node: RawObject) -> Data:
    spec: Data = node.get("spec", default={})
    return spec


def _csi_node_row(node: RawObject, age: Age) -> list[Cell]:
    drivers = node.get("spec", "drivers", default=[])
    return [node.metadata.name, len(drivers), age_of(node, age)]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        CsiNodeStrategy,
        KindRules(
            validate=csi_nodes.validate_csi_node,
            validate_change=csi_nodes.validate_csi_node_update,
            needs_resource_version=True,
            status={},
        ),
    ),
    defaults=csi_node_defaults,
    table=Table((NAME, number("Drivers"), AGE), _csi_node_row),
    subresources=(STATUS,),
    returns_deleted_in=("v1",),
)
