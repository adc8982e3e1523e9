"""Messages of apply conflicts, in Kubernetes' wording: kubectl prints them unchanged."""

from __future__ import annotations

from typing import NamedTuple

from allot.apiserver.managed_fields.field_sets import paths
from allot.apiserver.managed_fields.updater import ApplyConflictError

CONFLICT_CAUSE = "FieldManagerConflict"


class ConflictCause(NamedTuple):
    """One field that another manager owns."""

    message: str
    field: str


def conflict_causes(conflicts: ApplyConflictError) -> list[ConflictCause]:
    return [
        ConflictCause(f"conflict with {manager.description}", path)
        for manager, fields in conflicts.fields_by_manager.items()
        for path in paths(fields)
    ]


def conflict_message(conflicts: ApplyConflictError) -> str:
    causes = conflict_causes(conflicts)
    if len(causes) == 1:
        return f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    lines = []
    for manager, fields in conflicts.fields_by_manager.items():
        lines.append(f"conflicts with {manager.description}:")
        lines += [f"- {path}" for path in paths(fields)]
    return f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
