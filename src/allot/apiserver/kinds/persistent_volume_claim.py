"""PersistentVolumeClaims."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.api.volumes import CLASS_ANNOTATION
from allot.apiserver.defaults.filling import (
    Data,
    always_written,
    change,
    change_each,
    fill,
    make,
)
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table, wide
from allot.apiserver.printers.volumes import access_modes, or_unset, phase, storage_class
from allot.apiserver.printers.words import text_at
from allot.validation import volumes
from allot.validation.fields import FieldPath
from allot.validation.pod_warnings import claim_warnings


def volume_claim_defaults(claim: Data) -> Data:
    claim = change(claim, "spec", lambda spec: fill(spec, volumeMode="Filesystem"))
    return make(claim, "status", _status_defaults)


def _status_defaults(status: Data) -> Data:
    return change_each(
        fill(status, phase="Pending"),
        "conditions",
        lambda condition: always_written(condition, "lastProbeTime", "lastTransitionTime"),
    )


def _volume_claim_row(claim: RawObject, age: Age) -> list[Cell]:
    bound = bool(claim.get("spec", "volumeName"))
    return [
        claim.metadata.name,
        phase(claim),
        text_at(claim, "spec", "volumeName"),
        (text_at(claim, "status", "capacity", "storage") or "0") if bound else "",
        access_modes(claim.get("status", "accessModes", default=[])) if bound else "",
        storage_class(claim),
        or_unset(claim, "volumeAttributesClassName"),
        age(claim.metadata.creation_timestamp),
        or_unset(claim, "volumeMode"),
    ]


def _claim_warnings(claim: RawObject) -> list[str]:
    found = []
    if CLASS_ANNOTATION in claim.metadata.annotations:
        place = f"metadata.annotations[{CLASS_ANNOTATION}]"
        found.append(f'{place}: deprecated since v1.8; use "storageClassName" attribute instead')
    return [*found, *claim_warnings(claim.get("spec", default={}), FieldPath("spec"))]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=volumes.validate_volume_claim,
            validate_change=volumes.validate_volume_claim_update,
            status={"phase": "Pending"},
            warnings=_claim_warnings,
        ),
    ),
    defaults=volume_claim_defaults,
    table=Table(
        (
            NAME,
            Column("Status"),
            Column("Volume"),
            Column("Capacity"),
            Column("Access Modes"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            AGE,
            wide("VolumeMode"),
        ),
        _volume_claim_row,
    ),
    subresources=(STATUS,),
    returns_deleted_in=("v1",),
)
