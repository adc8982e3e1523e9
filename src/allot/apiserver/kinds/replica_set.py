"""ReplicaSets."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.defaults.workloads import with_counters
from allot.apiserver.kinds.definition import SCALE, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, TEMPLATE, Age, Cell, Table, number, wide
from allot.apiserver.printers.words import count_at, labels_text, selector_of, template_of
from allot.validation import workloads
from allot.validation.pod_warnings import IN_POD_NAMES, template_warnings


def replica_set_defaults(replica_set: Data) -> Data:
    replica_set = change(
        replica_set, "spec", lambda spec: fill(template_defaults(spec), replicas=1)
    )
    return with_counters(replica_set, REPLICA_COUNTERS)


def _replicas_row(workload: RawObject, age: Age) -> list[Cell]:
    """Replica sets and replication controllers, which write their selectors differently."""
    is_set = workload.kind == "ReplicaSet"
    return [
        workload.metadata.name,
        count_at(workload, "spec", "replicas"),
        count_at(workload, "status", "replicas"),
        count_at(workload, "status", "readyReplicas"),
        age(workload.metadata.creation_timestamp),
        *template_of(workload),
        selector_of(workload) if is_set else labels_text(workload.get("spec", "selector")),
    ]


REPLICA_COUNTERS: Final = {"replicas": 0}
REPLICA_TABLE: Final = Table(
    (NAME, number("Desired"), number("Current"), number("Ready"), AGE, *TEMPLATE, wide("Selector")),
    _replicas_row,
)
"""Also that of replication controllers."""


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=workloads.validate_workload,
            validate_change=workloads.validate_workload_update,
            status=REPLICA_COUNTERS,
            generation=COUNTED,
            warnings=template_warnings,
            name_is_used_in=IN_POD_NAMES,
        ),
    ),
    defaults=replica_set_defaults,
    table=REPLICA_TABLE,
    subresources=(SCALE, STATUS),
)
