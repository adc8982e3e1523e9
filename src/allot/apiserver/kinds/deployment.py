"""Deployments."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, fill, make
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.defaults.workloads import HISTORY, rolling_update
from allot.apiserver.kinds.definition import SCALE, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import (
    Generation,
    KindRules,
    RawStrategy,
    with_stored_labels,
)
from allot.apiserver.printers.column import (
    AGE,
    NAME,
    TEMPLATE,
    Age,
    Cell,
    Column,
    Table,
    number,
    wide,
)
from allot.apiserver.printers.words import count_at, selector_of, template_of
from allot.validation import workloads
from allot.validation.pod_warnings import IN_POD_NAMES, template_warnings


def deployment_defaults(deployment: Data) -> Data:
    return make(deployment, "spec", _deployment_spec_defaults)


def _deployment_spec_defaults(spec: Data) -> Data:
    spec = fill(
        template_defaults(spec),
        replicas=1,
        revisionHistoryLimit=HISTORY,
        progressDeadlineSeconds=600,
    )
    return make(
        spec,
        "strategy",
        lambda strategy: rolling_update(strategy, maxUnavailable="25%", maxSurge="25%"),
    )


def _deployment_row(deployment: RawObject, age: Age) -> list[Cell]:
    return [
        deployment.metadata.name,
        f"{count_at(deployment, 'status', 'readyReplicas')}/{count_at(deployment, 'spec', 'replicas')}",
        count_at(deployment, "status", "updatedReplicas"),
        count_at(deployment, "status", "availableReplicas"),
        age(deployment.metadata.creation_timestamp),
        *template_of(deployment),
        selector_of(deployment),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=workloads.validate_workload,
            validate_change=workloads.validate_workload_update,
            status={},
            status_metadata=with_stored_labels,
            generation=Generation((("spec",), ("metadata", "annotations"))),
            warnings=template_warnings,
            name_is_used_in=IN_POD_NAMES,
        ),
    ),
    defaults=deployment_defaults,
    table=Table(
        (
            NAME,
            Column("Ready"),
            number("Up-to-date"),
            number("Available"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _deployment_row,
    ),
    subresources=(SCALE, STATUS),
)
