"""Ingresses."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, first_few, joined
from allot.validation.networking import validate_ingress

_OLD_CLASS: Final = "kubernetes.io/ingress.class"


def _ingress_row(ingress: RawObject, age: Age) -> list[Cell]:
    hosts = [rule.get("host") for rule in ingress.get("spec", "rules", default=[])]
    has_tls = bool(ingress.get("spec", "tls"))
    class_ = ingress.get("spec", "ingressClassName")
    return [
        ingress.metadata.name,
        class_ or ingress.metadata.annotations.get(_OLD_CLASS) or NONE,
        first_few([host for host in hosts if host]) or "*",
        joined(_addresses(ingress)),
        "80, 443" if has_tls else "80",
        age_of(ingress, age),
    ]


def _addresses(ingress: RawObject) -> list[str]:
    entries: list[dict[str, Any]] = ingress.get("status", "loadBalancer", "ingress", default=[])
    return [entry.get("ip") or entry.get("hostname") or "" for entry in entries]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(validate=validate_ingress, status={"loadBalancer": {}}, generation=COUNTED),
    ),
    table=Table(
        (NAME, Column("Class"), Column("Hosts"), Column("Address"), Column("Ports"), AGE),
        _ingress_row,
    ),
    subresources=(STATUS,),
    without_effect="there is no ingress controller",
)
