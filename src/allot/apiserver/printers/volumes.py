"""Cells that volumes and volume claims share."""

from __future__ import annotations

from typing import Final

from allot.api.raw import RawObject
from allot.api.volumes import CLASS_ANNOTATION
from allot.apiserver.printers.column import UNSET
from allot.apiserver.printers.words import joined, text_at

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes(modes: list[str]) -> str:
    return joined(short for mode, short in _MODES.items() if mode in modes)


def phase(obj: RawObject) -> str:
    if obj.metadata.deletion_timestamp is not None:
        return "Terminating"
    return text_at(obj, "status", "phase")


def storage_class(obj: RawObject) -> str:
    annotated = obj.metadata.annotations.get(CLASS_ANNOTATION)
    return annotated or text_at(obj, "spec", "storageClassName")


def or_unset(obj: RawObject, field: str) -> str:
    return str(obj.get("spec", field) or UNSET)
