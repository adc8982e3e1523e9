"""ReplicationControllers."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.apiserver.defaults.filling import Data, change, fill, part
from allot.apiserver.defaults.pods import template_defaults
from allot.apiserver.defaults.workloads import with_counters, with_template_labels
from allot.apiserver.kinds.definition import SCALE, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.kinds.replica_set import REPLICA_COUNTERS, REPLICA_TABLE
from allot.validation import workloads
from allot.validation.pod_warnings import IN_POD_NAMES, template_warnings


def replication_controller_defaults(controller: Data) -> Data:
    """Selector and labels come from the template."""
    labels = part(controller, "spec", "template", "metadata", "labels")
    controller = change(controller, "spec", lambda spec: fill(template_defaults(spec), replicas=1))
    if labels:
        controller = change(
            controller,
            "spec",
            lambda spec: spec if spec.get("selector") else spec | {"selector": labels},
        )
        controller = with_template_labels(controller, labels)
    return with_counters(controller, REPLICA_COUNTERS)


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=workloads.validate_replication_controller,
            status=REPLICA_COUNTERS,
            generation=COUNTED,
            warnings=template_warnings,
            name_is_used_in=IN_POD_NAMES,
        ),
    ),
    defaults=replication_controller_defaults,
    table=REPLICA_TABLE,
    subresources=(SCALE, STATUS),
    selectable_fields={"status.replicas": "status.replicas"},
)
