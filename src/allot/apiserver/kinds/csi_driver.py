"""CSIDrivers."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import Generation, KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, NONE, UNSET, Age, Cell, Column, Table, flag
from allot.apiserver.printers.words import age_of, joined


def csi_driver_defaults(driver: Data) -> Data:
    return change(driver, "spec", _csi_driver_spec_defaults)


def _csi_driver_spec_defaults(spec: Data) -> Data:
    spec = fill(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
        preventPodSchedulingIfMissing=False,
    )
    return (
        spec
        if spec.get("volumeLifecycleModes")
        else spec | {"volumeLifecycleModes": ["Persistent"]}
    )


def _csi_driver_row(driver: RawObject, age: Age) -> list[Cell]:
    requests = driver.get("spec", "tokenRequests", default=[])
    modes = driver.get("spec", "volumeLifecycleModes", default=[])
    return [
        driver.metadata.name,
        bool(driver.get("spec", "attachRequired", default=True)),
        bool(driver.get("spec", "podInfoOnMount", default=False)),
        bool(driver.get("spec", "storageCapacity", default=False)),
        joined(request.get("audience", "") for request in requests) if requests else UNSET,
        bool(driver.get("spec", "requiresRepublish", default=False)),
        joined(modes) if modes else NONE,
        age_of(driver, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy, KindRules(needs_resource_version=True, generation=Generation(first=0))
    ),
    defaults=csi_driver_defaults,
    table=Table(
        (
            NAME,
            flag("AttachRequired"),
            flag("PodInfoOnMount"),
            flag("StorageCapacity"),
            Column("TokenRequests"),
            flag("RequiresRepublish"),
            Column("Modes"),
            AGE,
        ),
        _csi_driver_row,
    ),
    returns_deleted_in=("v1",),
)
