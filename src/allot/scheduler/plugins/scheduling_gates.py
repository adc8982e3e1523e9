"""SchedulingGates: a pod waits until all its gates are removed."""

from __future__ import annotations

from allot.scheduler.framework.events import WAITING_POD, Action, ClusterEvent, EventRegistration
from allot.scheduler.framework.plugins import PreEnqueuePlugin
from allot.scheduler.framework.status import SUCCESS, Status, unresolvable
from allot.scheduler.state.pods import PodInfo


class SchedulingGates(PreEnqueuePlugin):
    """Keeps gated pods out of the active queue."""

    name = "SchedulingGates"
    gates_on_referenced_objects = True

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.scheduling_gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]")

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        gone = ClusterEvent(WAITING_POD, Action.UPDATE_POD_GATES_ELIMINATED)
        return (EventRegistration(gone),)
