"""VolumeAttachments."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.strategy import metadata_for_status_update
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation import volumes
from allot.validation.immutable_fields import unchanged


def volume_attachment_defaults(attachment: Data) -> Data:
    return change(attachment, "status", lambda status: fill(status, attached=False))


def _attachment_row(attachment: RawObject, age: Age) -> list[Cell]:
    return [
        attachment.metadata.name,
        text_at(attachment, "spec", "attacher"),
        text_at(attachment, "spec", "source", "persistentVolumeName"),
        text_at(attachment, "spec", "nodeName"),
        bool(attachment.get("status", "attached")),
        age_of(attachment, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=volumes.validate_attachment,
            validate_change=unchanged("spec"),
            status={"attached": False},
            status_metadata=metadata_for_status_update,
            needs_resource_version=True,
        ),
    ),
    defaults=volume_attachment_defaults,
    table=Table(
        (NAME, Column("Attacher"), Column("PV"), Column("Node"), Column("Attached"), AGE),
        _attachment_row,
    ),
    subresources=(STATUS,),
    returns_deleted_in=("v1",),
)
