"""DaemonSets."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, fill, make
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.defaults.workloads import HISTORY, rolling_update, with_counters
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
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
from allot.apiserver.printers.words import count_at, labels_text, selector_of, template_of
from allot.validation import workloads
from allot.validation.pod_warnings import template_warnings


def daemon_set_defaults(daemon_set: Data) -> Data:
    daemon_set = make(daemon_set, "spec", _daemon_set_spec_defaults)
    return with_counters(daemon_set, _COUNTERS)


def _daemon_set_spec_defaults(spec: Data) -> Data:
    spec = fill(template_defaults(spec), revisionHistoryLimit=HISTORY)
    return make(
        spec,
        "updateStrategy",
        lambda strategy: rolling_update(strategy, maxUnavailable=1, maxSurge=0),
    )


_DAEMON_COUNTS: Final = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set_row(daemon_set: RawObject, age: Age) -> list[Cell]:
    return [
        daemon_set.metadata.name,
        *(count_at(daemon_set, "status", field) for field in _DAEMON_COUNTS),
        labels_text(daemon_set.get("spec", "template", "spec", "nodeSelector")),
        age(daemon_set.metadata.creation_timestamp),
        *template_of(daemon_set),
        selector_of(daemon_set),
    ]


_COUNTERS: Final = {
    "currentNumberScheduled": 0,
    "numberMisscheduled": 0,
    "desiredNumberScheduled": 0,
    "numberReady": 0,
}


TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(RawStrategy):
    """DaemonSets count the versions of their template in an annotation."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return _with_template_generation(super().prepare_create(new, request), 1)

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_update(new, old, request)
        generation = _template_generation(old)
        if new.get("spec", "template") != old.get("spec", "template"):
            generation += 1
        return _with_template_generation(new, generation)


def _template_generation(daemon_set: RawObject) -> int:
    written = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return int(written) if written.isascii() and written.isdecimal() else 0


def _with_template_generation(daemon_set: RawObject, generation: int) -> RawObject:
    metadata = daemon_set.metadata
    annotations = {**metadata.annotations, TEMPLATE_GENERATION: str(generation)}
    return daemon_set.with_metadata(replace(metadata, annotations=annotations))


DEFINITION: Final = KindDefinition(
    strategy=partial(
        DaemonSetStrategy,
        KindRules(
            validate=workloads.validate_workload,
            validate_change=workloads.validate_workload_update,
            status=_COUNTERS,
            generation=COUNTED,
            warnings=template_warnings,
        ),
    ),
    defaults=daemon_set_defaults,
    table=Table(
        (
            NAME,
            number("Desired"),
            number("Current"),
            number("Ready"),
            number("Up-to-date"),
            number("Available"),
            Column("Node Selector"),
            AGE,
            *TEMPLATE,
            wide("Selector"),
        ),
        _daemon_set_row,
    ),
    subresources=(STATUS,),
)
