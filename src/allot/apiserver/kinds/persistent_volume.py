"""PersistentVolumes."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver.defaults.filling import Data, change, fill, make
from allot.apiserver.defaults.pods import source_defaults
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, wide
from allot.apiserver.printers.volumes import access_modes, or_unset, phase, storage_class
from allot.apiserver.printers.words import text_at
from allot.validation import volumes


def volume_defaults(volume: Data) -> Data:
    volume = change(
        volume,
        "spec",
        lambda spec: source_defaults(
            fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
        ),
    )
    return make(volume, "status", lambda status: fill(status, phase="Pending"))


class PersistentVolumeStrategy(RawStrategy):
    """Persistent volumes: their status has the time of the last change of phase."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_create(new, request)
        return new.with_value(written_time(request.now), "status", "lastPhaseTransitionTime")

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        new = super().prepare_status_update(new, old, request)
        if new.get("status", "phase") == old.get("status", "phase"):
            moment = new.get("status", "lastPhaseTransitionTime")
            moment = moment or old.get("status", "lastPhaseTransitionTime")
        else:
            moment = written_time(request.now)
        return new.with_value(moment, "status", "lastPhaseTransitionTime") if moment else new


def _volume_row(volume: RawObject, age: Age) -> list[Cell]:
    claim = volume.get("spec", "claimRef", default={})
    return [
        volume.metadata.name,
        text_at(volume, "spec", "capacity", "storage"),
        access_modes(volume.get("spec", "accessModes", default=[])),
        text_at(volume, "spec", "persistentVolumeReclaimPolicy"),
        phase(volume),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        storage_class(volume),
        or_unset(volume, "volumeAttributesClassName"),
        text_at(volume, "status", "reason"),
        age(volume.metadata.creation_timestamp),
        or_unset(volume, "volumeMode"),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        PersistentVolumeStrategy,
        KindRules(validate=volumes.validate_volume, status={"phase": "Pending"}),
    ),
    defaults=volume_defaults,
    table=Table(
        (
            NAME,
            Column("Capacity"),
            Column("Access Modes"),
            Column("Reclaim Policy"),
            Column("Status"),
            Column("Claim"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            Column("Reason"),
            AGE,
            wide("VolumeMode"),
        ),
        _volume_row,
    ),
    subresources=(STATUS,),
    returns_deleted_in=("v1",),
)
