"""Obstacles: why the claims of a pod cannot be used, so that the pod is gated.

Obstacles are values; `obstacle_text` and `remedy` turn them into text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from allot.api.base import ApiObject, always
from allot.api.resource import ADMIN_ACCESS_LABEL
from allot.api.similar_names import joined_with_or


class ClaimObstacle(ApiObject, frozen=True, tag_field="kind", tag=True):
    """Why an entry of the pod's claims cannot be used."""

    entry: str = always(str)


class SourceMissing(ClaimObstacle, frozen=True):
    """The entry names neither claim nor template."""


class TemplateMissing(ClaimObstacle, frozen=True):
    """The template does not exist."""

    template: str = always(str)
    similar: tuple[str, ...] = ()


class ClaimMissing(ClaimObstacle, frozen=True):
    """The claim does not exist."""

    claim: str = always(str)
    similar: tuple[str, ...] = ()
    template: str = ""
    """The template from which it was created, if any."""


class ClaimOfOther(ClaimObstacle, frozen=True):
    """A claim with the expected name exists, but was not created for this pod."""

    claim: str = always(str)


class ClaimTerminating(ClaimObstacle, frozen=True):
    """The claim is being deleted."""

    claim: str = always(str)


class ClaimNotMade(ClaimObstacle, frozen=True):
    """No claim was created from the template, for an unknown reason."""

    template: str = always(str)


class ClaimRefused(ClaimObstacle, frozen=True):
    """The controller could not create the claim."""

    template: str = always(str)
    message: str = always(str)
    """In the controller's words."""
    last_at: datetime | None = None
    count: int = 1


class QuotaExcess(ApiObject, frozen=True):
    """An entry of a ResourceQuota that the claim would exceed."""

    name: str = always(str)
    requested: str = always(str)
    used: str = always(str)
    hard: str = always(str)
    needed: str = always(str)
    """The limit that would be enough."""
    can_be_freed: bool = False
    """Whether it would be enough if other claims used nothing."""


class QuotaExceeded(ClaimObstacle, frozen=True):
    """A ResourceQuota does not allow the claim."""

    template: str = always(str)
    quota: str = always(str)
    excess: tuple[QuotaExcess, ...] = ()


class AdminAccessForbidden(ClaimObstacle, frozen=True):
    """The claim asks for admin access, and its namespace lacks the label that allows it."""

    source: str = always(str)
    """The claim, or the template that it is created from."""
    namespace: str = always(str)


AnyObstacle = (
    SourceMissing
    | TemplateMissing
    | ClaimMissing
    | ClaimOfOther
    | ClaimTerminating
    | ClaimNotMade
    | ClaimRefused
    | QuotaExceeded
    | AdminAccessForbidden
)
Unmade = ClaimNotMade | ClaimRefused | QuotaExceeded | AdminAccessForbidden
"""Obstacles of claims that only need to be created from their template."""


# --- text ---


def obstacle_text(obstacle: AnyObstacle) -> str:
    """The obstacle, as a clause."""
    match obstacle:
        case SourceMissing(entry):
            return f"entry {entry} of its claims names neither claim nor template"
        case TemplateMissing(_, template):
            return f"template {template} does not exist"
        case ClaimMissing(_, claim):
            return f"claim {claim} does not exist"
        case ClaimOfOther(_, claim):
            return f"claim {claim} was not made for this pod"
        case ClaimTerminating(_, claim):
            return f"claim {claim} is being deleted"
        case ClaimNotMade(entry, template):
            return f"no claim has been made from template {template} for its entry {entry} yet"
        case ClaimRefused(entry, template, message):
            return f"no claim can be made from template {template} for its entry {entry}: {message}"
        case QuotaExceeded(entry, template, quota, excess):
            limits = " and ".join(
                f"{each.name} is limited to {each.hard}, {each.used} of it used"
                f" and {each.requested} asked for"
                for each in excess
            )
            return (
                f"ResourceQuota {quota} does not allow the claim from template {template}"
                f" for its entry {entry}: {limits}"
            )
        case AdminAccessForbidden(_, source, namespace):
            return (
                f"{source} asks for admin access, and namespace {namespace} does not have the label"
                f" {ADMIN_ACCESS_LABEL}: true"
            )


def advised(obstacles: Iterable[AnyObstacle]) -> str:
    """What to change about all of them, as a sentence that follows another; empty if nothing can be done."""
    text = "; ".join(filter(None, map(remedy, obstacles)))
    return f" {text[0].upper()}{text[1:]}." if text else ""


def remedy(obstacle: AnyObstacle) -> str:
    """What to change, as an instruction; empty if the user can only wait."""
    match obstacle:
        case SourceMissing(entry):
            return f"create the pod again with a claim or a template in entry {entry}"
        case TemplateMissing(entry, _, similar):
            return _other_name("resourceClaimTemplateName", entry, similar)
        case ClaimMissing(entry, _, similar, ""):
            return _other_name("resourceClaimName", entry, similar)
        case ClaimOfOther(_, claim):
            return f"delete claim {claim}, so that another can be made for the pod"
        case ClaimRefused(_, template):
            return f"change template {template} or what refuses the claim; it is tried again"
        case QuotaExceeded(_, template, quota, excess):
            limits = " and ".join(f"{each.name} to {each.needed}" for each in excess)
            can_be_freed = all(each.can_be_freed for each in excess)
            freed = ", delete claims that are not needed," if can_be_freed else ""
            return (
                f"raise {limits} in ResourceQuota {quota}{freed}"
                f" or ask for less in template {template}"
            )
        case AdminAccessForbidden(_, source, namespace):
            return f"label namespace {namespace} or remove adminAccess from {source}"
        case _:
            return ""


def _other_name(field: str, entry: str, similar: tuple[str, ...]) -> str:
    if similar:
        changed = f"{field}: {joined_with_or(similar)}"
        return f"create it, or create the pod again with {changed} in entry {entry}"
    return f"create it, or create the pod again with another {field} in entry {entry}"
