"""The conformance interface: one JSON object in, one out. The format is that of the vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allot.api.quantity import Quantity, quantity_from_json
from allot.cel.device import AttributeValue, CelDevice, cel_device
from allot.cel.errors import CelCompileError
from allot.cel.kubernetes import Origin
from allot.cel.program import UNBOUNDED_COST, Use, compile_derived, compile_selector
from allot.features import FeatureGates
from allot.rules import RuleSet


class _PlainCapacity:
    def __init__(self, value: Quantity) -> None:
        self.value = value


def answer_line(line: Mapping[str, Any], rules: RuleSet = RuleSet.V1_38) -> dict[str, Any]:
    """The answer to one request: compile error, or type, costs, and value or error."""
    use = Use(line.get("use", "selector"))
    origin = Origin(line.get("env", "stored"))
    gates = _gates(line.get("features") or {}).with_rules(rules)
    compile_ = compile_selector if use is Use.SELECTOR else compile_derived
    try:
        program = compile_(line["expression"], origin, gates)
    except CelCompileError as error:
        return {"compileError": error.text}
    unbounded = program.max_cost == UNBOUNDED_COST
    answer: dict[str, Any] = {
        "type": str(program.output_type),
        "maxCost": "max" if unbounded else program.max_cost,
    }
    outcome = program.evaluate(device_from_json(line["device"]))
    answer["cost"] = outcome.cost
    if outcome.error is not None:
        answer["error"] = outcome.error
    elif isinstance(outcome.value, AttributeValue):
        answer["value"] = attribute_to_json(outcome.value)
    else:
        answer["value"] = outcome.value
    return answer


def _gates(features: Mapping[str, bool]) -> FeatureGates:
    """Gates by their full names (`DRAListTypeAttributes`) or without the prefix."""
    on = [name for name, enabled in features.items() if enabled]
    return FeatureGates([*on, *(f"DRA{name}" for name in on)])


def device_from_json(line: Mapping[str, Any]) -> CelDevice:
    """A device as `{"driver", "device": {"name", "attributes", "capacity", ...}}`."""
    device = line.get("device") or {}
    attributes = {
        name: _attribute_from_json(value)
        for name, value in (device.get("attributes") or {}).items()
    }
    capacity = {
        name: _PlainCapacity(quantity_from_json(value.get("value")))
        for name, value in (device.get("capacity") or {}).items()
    }
    return cel_device(
        line.get("driver", ""),
        device.get("name", ""),
        attributes,
        capacity,
        device.get("allowMultipleAllocations"),
    )


def _attribute_from_json(value: Mapping[str, Any]) -> AttributeValue:
    return AttributeValue(
        int_=value.get("int"),
        bool_=value.get("bool"),
        string=value.get("string"),
        version=value.get("version"),
        ints=value.get("ints"),
        bools=value.get("bools"),
        strings=value.get("strings"),
        versions=value.get("versions"),
    )


def attribute_to_json(attribute: AttributeValue) -> dict[str, Any]:
    """The attribute as the API writes it: only the field that is set, no empty lists."""
    written: dict[str, Any] = {}
    for name, value in attribute._asdict().items():
        if value is None or value == ():
            continue
        written[name.rstrip("_")] = list(value) if isinstance(value, tuple) else value
    return written
