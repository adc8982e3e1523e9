"""The conditions of a terminating namespace: what could not be deleted, what remains, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple


@dataclass
class DeletionProgress:
    """The result of one attempt to delete a namespace's contents."""

    discovery_failure: str = ""
    parsing_failure: str = ""
    content_failures: list[str] = field(default_factory=list)
    remaining: Counter[str] = field(default_factory=Counter)
    """Remaining objects by resource."""
    finalizers: Counter[str] = field(default_factory=Counter)
    """Remaining objects by finalizer."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing remains and nothing failed."""
        return not (
            self.discovery_failure
            or self.parsing_failure
            or self.content_failures
            or self.remaining
        )


class _DeletionCondition(NamedTuple):
    """A condition; False, with the given reason, unless there is a problem."""

    type: str
    problem: str
    bad_reason: str
    good_reason: str
    good_message: str

    def as_json(self) -> dict[str, Any]:
        bad = bool(self.problem)
        return {
            "type": self.type,
            "status": "True" if bad else "False",
            "reason": self.bad_reason if bad else self.good_reason,
            "message": self.problem or self.good_message,
        }


_COMPARED: Final = ("status", "reason", "message")


def _deletion_conditions(progress: DeletionProgress) -> Iterator[_DeletionCondition]:
    yield _DeletionCondition(
        "NamespaceDeletionDiscoveryFailure",
        progress.discovery_failure,
        "DiscoveryFailed",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    )
    yield _DeletionCondition(
        "NamespaceDeletionGroupVersionParsingFailure",
        progress.parsing_failure,
        "GroupVersionParsingFailed",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    )
    yield _DeletionCondition(
        "NamespaceDeletionContentFailure",
        "; ".join(progress.content_failures),
        "ContentDeletionFailed",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    )
    yield _DeletionCondition(
        "NamespaceContentRemaining",
        _listed(
            "Some resources are remaining", "{}. has {} resource instances", progress.remaining
        ),
        "SomeResourcesRemain",
        "ContentRemoved",
        "All content successfully removed",
    )
    yield _DeletionCondition(
        "NamespaceFinalizersRemaining",
        _listed(
            "Some content in the namespace has finalizers remaining",
            "{} in {} resource instances",
            progress.finalizers,
        ),
        "SomeFinalizersRemain",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    )


def _listed(text: str, form: str, counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    return f"{text}: {', '.join(form.format(*item) for item in sorted(counts.items()))}"


def with_deletion_conditions(
    conditions: Sequence[Mapping[str, Any]], progress: DeletionProgress, now: str
) -> list[dict[str, Any]]:
    """The updated conditions; those of other types stay. Times change only with the status."""
    known = {condition.get("type"): dict(condition) for condition in conditions}
    for condition in _deletion_conditions(progress):
        wanted = condition.as_json()
        old = known.get(condition.type)
        if old is not None and all(old.get(name) == wanted[name] for name in _COMPARED):
            continue
        same = old is not None and old.get("status") == wanted["status"]
        since = old["lastTransitionTime"] if same and old is not None else now
        known[condition.type] = {**wanted, "lastTransitionTime": since}
    return list(known.values())
