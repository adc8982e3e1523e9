"""Queueing hints: which plugins an event concerns, and whether it may make a pod schedulable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from allot.scheduler.core.in_flight_events import ObservedEvent
from allot.scheduler.framework.events import ClusterEvent, EventRegistration, Hint
from allot.scheduler.state.pods import PodInfo


class QueueingHints:
    """The events that plugins have registered for, with their hints."""

    def __init__(self, registrations: Mapping[str, Sequence[EventRegistration]]) -> None:
        """`registrations` are by plugin."""
        self._registrations = registrations
        self._interested: dict[ClusterEvent, frozenset[str]] = {}

    def interested_plugins(self, event: ClusterEvent) -> frozenset[str]:
        """The plugins that have registered for the event."""
        found = self._interested.get(event)
        if found is None:
            found = self._interested[event] = frozenset(
                plugin
                for plugin, registrations in self._registrations.items()
                if any(registration.event.covers(event) for registration in registrations)
            )
        return found

    def helps_only_referencing_pods(
        self, concerned: Iterable[str], observed: ObservedEvent
    ) -> bool:
        """Whether all these plugins say that the event helps only pods that reference the object."""
        event, old, new = observed.event, observed.old, observed.new
        return all(
            registration.helps_only_referencing_pods is not None
            and registration.helps_only_referencing_pods(old, new)
            for plugin in concerned
            for registration in self._registrations[plugin]
            if registration.event.covers(event)
        )

    def is_worth_requeuing(self, plugin: str, pod: PodInfo, observed: ObservedEvent) -> bool:
        """Whether a plugin that rejected the pod says that the event may help."""
        for registration in self._registrations.get(plugin, ()):
            if not registration.event.covers(observed.event):
                continue
            if registration.hint is None:
                return True
            if registration.hint(pod, observed.old, observed.new) is Hint.QUEUE:
                return True
        return False
