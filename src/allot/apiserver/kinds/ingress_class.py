"""IngressClasses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation.networking import validate_ingress_class, validate_ingress_class_update


def ingress_class_defaults(ingress_class: Data) -> Data:
    return change(
        ingress_class,
        "spec",
        lambda spec: change(spec, "parameters", lambda given: fill(given, scope="Cluster")),
    )


IS_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"


def is_default(ingress_class: RawObject) -> bool:
    return ingress_class.metadata.annotations.get(IS_DEFAULT) == "true"


def newest_default(classes: Iterable[RawObject]) -> RawObject | None:
    """The default class; the newest one if there are several, and the first by name of those."""
    defaults = sorted(filter(is_default, classes), key=lambda found: found.metadata.name)
    created = [found.metadata.creation_timestamp for found in defaults]
    newest = max((time for time in created if time is not None), default=None)
    return next((found for found in defaults if found.metadata.creation_timestamp == newest), None)


def _ingress_class_row(ingress_class: RawObject, age: Age) -> list[Cell]:
    parameters = ingress_class.get("spec", "parameters")
    shown = NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        kind = parameters.get("kind", "")
        shown = f"{kind}.{group}/" if group else f"{kind}/"
        shown += parameters.get("name", "")
    return [
        ingress_class.metadata.name + (" (default)" if is_default(ingress_class) else ""),
        text_at(ingress_class, "spec", "controller"),
        shown,
        age_of(ingress_class, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=validate_ingress_class,
            validate_change=validate_ingress_class_update,
            generation=COUNTED,
        ),
    ),
    defaults=ingress_class_defaults,
    table=Table((NAME, Column("Controller"), Column("Parameters"), AGE), _ingress_class_row),
    without_effect="there is no ingress controller",
)
