"""ResourceQuotas."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import joined
from allot.validation import resource_quota


def _quota_row(quota: RawObject, age: Age) -> list[Cell]:
    """Each bound as `name: used/hard`; those of limits have a column of their own."""
    used = quota.get("status", "used", default={})
    hard = quota.get("status", "hard") or quota.get("spec", "hard") or {}
    bounds = {name: f"{name}: {used.get(name, 0)}/{bound}" for name, bound in sorted(hard.items())}
    limits = [bound for name, bound in bounds.items() if name.startswith("limits.")]
    requests = [bound for name, bound in bounds.items() if not name.startswith("limits.")]
    return [
        quota.metadata.name,
        joined(requests, ", "),
        joined(limits, ", "),
        age(quota.metadata.creation_timestamp),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(RawStrategy, KindRules(validate=resource_quota.validate_quota, status={})),
    table=Table((NAME, Column("Request"), Column("Limit"), AGE), _quota_row),
    subresources=(STATUS,),
    returns_deleted_in=("v1",),
)
