"""The status of a CustomResourceDefinition: which of its names are accepted, and whether it is established.

Names are unique within a group. A name that is taken stays with the definition that has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.custom_resources import (
    API_APPROVED,
    ESTABLISHED,
    NAMES_ACCEPTED,
    CustomResourceDefinition,
)
from allot.apiserver.kinds.custom_resource_definition import with_condition
from allot.validation.custom_resource_definition import APPROVAL, approval_problem, is_protected

_SINGLE: Final = (
    ("plural", "PluralConflict", "resources"),
    ("singular", "SingularConflict", "resources"),
    ("kind", "KindConflict", "kinds"),
    ("listKind", "ListKindConflict", "kinds"),
)


class TakenNames(NamedTuple):
    """Names that definitions of one group have."""

    resources: frozenset[str]
    kinds: frozenset[str]

    def and_those(self, other: TakenNames) -> TakenNames:
        return TakenNames(self.resources | other.resources, self.kinds | other.kinds)


def names_taken_by(definition: CustomResourceDefinition) -> TakenNames:
    """The accepted names of a definition."""
    names = definition.accepted_names
    resources = {names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())}
    kinds = {names.get("kind"), names.get("listKind")}
    return TakenNames(frozenset(filter(None, resources)), frozenset(filter(None, kinds)))


def taken_names(definitions: Iterable[tuple[str, TakenNames]]) -> dict[str, TakenNames]:
    """All names by group, of definitions that are given as group and own names."""
    resources: dict[str, set[str]] = {}
    kinds: dict[str, set[str]] = {}
    for group, names in definitions:
        resources.setdefault(group, set()).update(names.resources)
        kinds.setdefault(group, set()).update(names.kinds)
    return {
        group: TakenNames(frozenset(resources[group]), frozenset(kinds[group]))
        for group in resources
    }


def with_status(
    definition: CustomResourceDefinition, taken: TakenNames, now: datetime
) -> CustomResourceDefinition:
    """The definition with the status it should have; the same one if it has it."""
    accepted, reason, message = _accepted_names(definition, taken)
    new = definition
    if accepted != definition.accepted_names:
        new = new.with_value(accepted, "status", "acceptedNames")
    is_accepted = not reason
    new = _with(
        new,
        NAMES_ACCEPTED,
        is_accepted,
        reason or "NoConflicts",
        message or "no conflicts found",
        now,
    )
    if is_accepted or definition.has_condition(ESTABLISHED):
        established = (True, "InitialNamesAccepted", "the initial names have been accepted")
    else:
        established = (False, "NotAccepted", "not all names are accepted")
    new = _with(new, ESTABLISHED, *established, now)
    if is_protected(definition.group):
        new = _with_approval(new, now)
    return definition if new == definition else new


def _with(
    definition: CustomResourceDefinition,
    type_: str,
    is_true: bool,
    reason: str,
    message: str,
    now: datetime,
) -> CustomResourceDefinition:
    known = definition.condition(type_)
    status = "True" if is_true else "False"
    if known is not None and (known.get("status"), known.get("reason"), known.get("message")) == (
        status,
        reason,
        message,
    ):
        return definition
    return with_condition(definition, type_, status, reason, message, now)


def _with_approval(definition: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
    value = definition.metadata.annotations.get(APPROVAL, "")
    problem = approval_problem(definition.data)
    if problem is not None:
        reason = "InvalidAnnotation" if value else "MissingAnnotation"
        return _with(definition, API_APPROVED, False, reason, problem, now)
    if value.startswith("unapproved"):
        return _with(
            definition, API_APPROVED, False, "UnapprovedAnnotation", f'not approved: "{value}"', now
        )
    return _with(definition, API_APPROVED, True, "ApprovedAnnotation", f"approved in {value}", now)


def _accepted_names(
    definition: CustomResourceDefinition, taken: TakenNames
) -> tuple[dict[str, Any], str, str]:
    """The accepted names, and the reason and message of the last conflict."""
    wanted, has = definition.names, definition.accepted_names
    accepted: dict[str, Any] = {name: value for name, value in has.items() if value}
    reason = message = ""
    for name, conflict, kind in _SINGLE[:2]:
        problem = _conflict(wanted.get(name) or "", has.get(name) or "", getattr(taken, kind))
        if problem:
            reason, message = conflict, problem
        else:
            accepted[name] = wanted.get(name) or ""
    mine = frozenset(has.get("shortNames") or ())
    problems = [
        problem
        for short in wanted.get("shortNames") or ()
        if short not in mine and (problem := _conflict(short, "", taken.resources))
    ]
    if problems:
        reason = "ShortNamesConflict"
        message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    else:
        accepted["shortNames"] = list(wanted.get("shortNames") or ())
    for name, conflict, kind in _SINGLE[2:]:
        problem = _conflict(wanted.get(name) or "", has.get(name) or "", getattr(taken, kind))
        if problem:
            reason, message = conflict, problem
        else:
            accepted[name] = wanted.get(name) or ""
    accepted["categories"] = list(wanted.get("categories") or ())
    return _ordered(accepted), reason, message


def _ordered(names: dict[str, Any]) -> dict[str, Any]:
    """As Go writes them: plural and kind always, others if they are not empty."""
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {
        name: names.get(name) or ""
        for name in order
        if names.get(name) or name in ("plural", "kind")
    }


def _conflict(wanted: str, has: str, taken: frozenset[str]) -> str:
    if wanted == has or wanted not in taken:
        return ""
    return f'"{wanted}" is already in use'
