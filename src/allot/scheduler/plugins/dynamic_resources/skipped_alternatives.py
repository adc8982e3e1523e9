"""Alternatives that are skipped (KEP-4816): the pod is told, once for each reason."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final

from allot.allocation import SkippedAlternative
from allot.api.claims import ResourceClaim
from allot.rules import SKIP_INCOMPLETE_POOLS, SKIP_MISSING_CLASSES
from allot.scheduler.plugins.dynamic_resources.filter_results import missing_classes
from allot.scheduler.state.pods import PodInfo

SKIPPED: Final = "SkippedAlternative"
"""The reason of the events."""
MAX_REMEMBERED: Final = 10_000
"""So many events are remembered; an older one may be repeated."""

Warn = Callable[[PodInfo, str, str], None]
"""Tells users something about a pod: the reason and the note of a Warning event."""


def no_warning(_pod: PodInfo, _reason: str, _note: str) -> None:
    """Records nothing."""


class SkippedAlternatives:
    """Warns about alternatives that were skipped where v1.38 would not schedule the pod at all."""

    def __init__(self, warn: Warn = no_warning) -> None:
        self._warn = warn
        self._reported: dict[tuple[str, str], None] = {}

    def report_missing_classes(
        self, pod: PodInfo, claims: Iterable[ResourceClaim], classes: Container[str]
    ) -> None:
        """One event for each pod and class."""
        for claim in claims:
            for label, class_name in missing_classes(claim, classes):
                self._record_event(
                    pod,
                    class_name,
                    f"device class {class_name} does not exist: skipping alternative {label} of "
                    f"claim {claim.metadata.name}",
                    SKIP_MISSING_CLASSES,
                )

    def report_unusable_pools(
        self, pod: PodInfo, node_name: str, skipped: Iterable[SkippedAlternative]
    ) -> None:
        """One event for each pod and pool."""
        for each in skipped:
            if each.rule == SKIP_INCOMPLETE_POOLS:
                self._record_event(
                    pod,
                    each.reason,
                    f"on node {node_name}, alternative {each.label} is skipped: {each.reason}",
                    SKIP_INCOMPLETE_POOLS,
                )

    def _record_event(self, pod: PodInfo, about: str, what: str, rule: str) -> None:
        key = (pod.uid, about)
        if key in self._reported:
            return
        self._reported[key] = None
        if len(self._reported) > MAX_REMEMBERED:
            del self._reported[next(iter(self._reported))]
        note = f"{what}; kube-scheduler v1.38 would leave the pod pending (rule {rule})"
        self._warn(pod, SKIPPED, note)
