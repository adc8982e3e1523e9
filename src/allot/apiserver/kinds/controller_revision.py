"""ControllerRevisions."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column, Table, number
from allot.apiserver.printers.words import count_at
from allot.validation import core_objects
from allot.validation.immutable_fields import unchanged


def _revision_row(revision: RawObject, age: Age) -> list[Cell]:
    return [
        revision.metadata.name,
        _controller(revision),
        count_at(revision, "revision"),
        age(revision.metadata.creation_timestamp),
    ]


def _controller(obj: RawObject) -> str:
    """The controller of the object: `statefulset.apps/web`."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            group = owner.api_version.rpartition("/")[0]
            kind = f"{owner.kind.lower()}.{group}" if group else owner.kind.lower()
            return f"{kind}/{owner.name}"
    return NONE


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(validate=core_objects.validate_revision, validate_change=unchanged("data")),
    ),
    table=Table((NAME, Column("Controller"), number("Revision"), AGE), _revision_row),
)
