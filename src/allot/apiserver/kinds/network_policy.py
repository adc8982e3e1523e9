"""NetworkPolicies."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, change_each, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, selector_cell
from allot.validation.networking import validate_network_policy


def network_policy_defaults(policy: Data) -> Data:
    return change(policy, "spec", _spec_defaults)


def _spec_defaults(spec: Data) -> Data:
    for direction in ("ingress", "egress"):
        spec = change_each(
            spec,
            direction,
            lambda rule: change_each(rule, "ports", lambda port: fill(port, protocol="TCP")),
        )
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return spec if spec.get("policyTypes") else {**spec, "policyTypes": types}


def _network_policy_row(policy: RawObject, age: Age) -> list[Cell]:
    selector = policy.get("spec", "podSelector")
    return [policy.metadata.name, selector_cell(selector), age_of(policy, age)]


DEFINITION: Final = KindDefinition(
    strategy=partial(RawStrategy, KindRules(validate=validate_network_policy, generation=COUNTED)),
    defaults=network_policy_defaults,
    table=Table((NAME, Column("Pod-Selector"), AGE), _network_policy_row),
    without_effect="simulated pods have no network",
)
