"""The columns that `kubectl get` shows, and what stands in them.

column, ages, words           what rows are made of
dra_kinds                     kinds of resource.k8s.io
pods                          pods, pod templates and nodes
core_kinds, workloads, other_kinds    the rest
"""

from __future__ import annotations

from typing import Any, Final

from allot.api.raw import RawObject
from allot.api.resource import GROUP as DRA
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.printers import core_kinds, other_kinds, workloads
from allot.apiserver.printers.ages import human_age, human_duration
from allot.apiserver.printers.column import AGE, NAME, NONE, UNKNOWN, Age, Cell, Column, Table
from allot.apiserver.printers.dra_kinds import COLUMNS, claim_state, dra_cells
from allot.apiserver.printers.nodes import NODES
from allot.apiserver.printers.pods import PODS

__all__ = [
    "COLUMNS",
    "NONE",
    "UNKNOWN",
    "Age",
    "Cell",
    "Column",
    "cells",
    "claim_state",
    "columns",
    "human_age",
    "human_duration",
]


def _plain_row(obj: RawObject, age: Age) -> list[Cell]:
    return [obj.metadata.name, age(obj.metadata.creation_timestamp)]


_PLAIN: Final = Table((NAME, AGE), _plain_row)
_TABLES: Final[dict[tuple[str, str], Table]] = {
    ("", "Pod"): PODS,
    ("", "Node"): NODES,
    **core_kinds.TABLES,
    **workloads.TABLES,
    **other_kinds.TABLES,
}


def columns(resource: Resource) -> tuple[Column, ...]:
    """The columns of a resource. Both groups show events alike."""
    if resource.group == DRA:
        return COLUMNS[resource.kind]
    group = resource.stored_as[0] if resource.stored_as is not None else resource.group
    return _TABLES.get((group, resource.kind), _PLAIN).columns


def cells(obj: Any, age: Age) -> list[Cell]:
    """One row of an object in its hub or storage version. `age` turns a time into the text people read."""
    if not isinstance(obj, RawObject):
        return dra_cells(obj, age)
    gvk = obj.gvk
    return _TABLES.get((gvk.group, gvk.kind), _PLAIN).row(obj, age)
