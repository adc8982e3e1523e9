"""StatefulSets."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, change_each, fill, is_missing, make
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.defaults.workloads import HISTORY, rolling_update, with_counters
from allot.apiserver.kinds.definition import SCALE, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, TEMPLATE, Age, Cell, Column, Table
from allot.apiserver.printers.words import count_at, template_of
from allot.validation import workloads
from allot.validation.formats import label_problems
from allot.validation.pod_warnings import template_warnings


def stateful_set_defaults(stateful_set: Data) -> Data:
    stateful_set = make(stateful_set, "spec", _stateful_set_spec_defaults)
    return with_counters(stateful_set, _COUNTERS)


def _stateful_set_spec_defaults(spec: Data) -> Data:
    spec = fill(
        template_defaults(spec),
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=HISTORY,
    )
    spec = make(
        spec,
        "persistentVolumeClaimRetentionPolicy",
        lambda policy: fill(policy, whenDeleted="Retain", whenScaled="Retain"),
    )
    spec = make(spec, "updateStrategy", _stateful_strategy_defaults)
    return change_each(spec, "volumeClaimTemplates", _claim_template_defaults)


def _stateful_strategy_defaults(strategy: Data) -> Data:
    # A strategy that names its type but no parameters has none: so it is in Kubernetes.
    if not is_missing(strategy.get("type")) and "rollingUpdate" not in strategy:
        return strategy
    return rolling_update(strategy, partition=0, maxUnavailable=1)


def _claim_template_defaults(claim: Data) -> Data:
    """The templates are whole objects, of a kind that goes without saying."""
    claim = change(claim, "spec", lambda spec: fill(spec, volumeMode="Filesystem"))
    claim = fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
    return make(claim, "status", lambda status: fill(status, phase="Pending"))


def _stateful_set_row(stateful_set: RawObject, age: Age) -> list[Cell]:
    ready = count_at(stateful_set, "status", "readyReplicas")
    return [
        stateful_set.metadata.name,
        f"{ready}/{count_at(stateful_set, 'spec', 'replicas')}",
        age(stateful_set.metadata.creation_timestamp),
        *template_of(stateful_set),
    ]


_COUNTERS: Final = {"replicas": 0, "availableReplicas": 0}


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            label_problems,
            workloads.validate_workload,
            workloads.validate_stateful_set_update,
            status=_COUNTERS,
            generation=COUNTED,
            warnings=template_warnings,
        ),
    ),
    defaults=stateful_set_defaults,
    table=Table((NAME, Column("Ready"), AGE, *TEMPLATE), _stateful_set_row),
    subresources=(SCALE, STATUS),
)
