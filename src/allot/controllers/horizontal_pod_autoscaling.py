"""HorizontalPodAutoscalers: keeps the replicas of a workload within their bounds, and says why it does no more.

Nothing measures the load of simulated pods, so metrics are never available, as in a cluster without a metrics server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from allot.api.identities import GroupVersion, ObjectKey
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.client.discovery import discover
from allot.client.errors import ApiStatusError
from allot.client.events import NORMAL, WARNING, reference_to
from allot.client.resources import HORIZONTAL_POD_AUTOSCALERS, Resource, raw_resource
from allot.controllers.controller import ControllerContext, QueueController
from allot.controllers.workloads.conditions import ConditionUpdate, conditions_of, with_condition
from allot.controllers.workloads.status_writes import write_status

SYNC_SECONDS: Final = 15.0
ABLE: Final = "AbleToScale"
ACTIVE: Final = "ScalingActive"
TO_ZERO: Final = "ScaledToZero"
_NO_METRICS: Final = (
    "unable to fetch metrics from resource metrics API:"
    " the server could not find the requested resource (get pods.metrics.k8s.io)"
)


class ScalingDecision(NamedTuple):
    """The replicas that a workload should have, and why."""

    replicas: int
    reason: str = ""
    """Of a change; empty if metrics would have to say more."""
    is_disabled: bool = False


def decide(autoscaler: RawObject, replicas: int) -> ScalingDecision:
    """What can be decided without metrics."""
    least = autoscaler.get("spec", "minReplicas", default=1)
    most = autoscaler.get("spec", "maxReplicas", default=1)
    if replicas == 0 and least != 0:
        return ScalingDecision(0, is_disabled=True)
    if replicas > most:
        return ScalingDecision(most, "Current number of replicas above Spec.MaxReplicas")
    if replicas < least:
        return ScalingDecision(least, "Current number of replicas below Spec.MinReplicas")
    return ScalingDecision(replicas)


def missing_metric(autoscaler: RawObject) -> tuple[str, str]:
    """The reason and message of the first metric, which cannot be measured."""
    metric: dict[str, Any] = next(iter(autoscaler.get("spec", "metrics", default=[])), {})
    name = (metric.get("resource") or metric.get("containerResource") or {}).get("name", "")
    match metric.get("type"):
        case "Resource" | "ContainerResource" as kind:
            problem = f"unable to get metrics for resource {name}: {_NO_METRICS}"
            return f"FailedGet{kind}Metric", f"failed to get {name} utilization: {problem}"
        case kind:
            return f"FailedGet{kind}Metric", f"unable to get metric: {_NO_METRICS}"


class HorizontalPodAutoscalerController(QueueController[ObjectKey]):
    name = "horizontal-pod-autoscaler-controller"
    event_source = "horizontal-pod-autoscaler"
    queue_name = "horizontalpodautoscaler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder
        self._targets: dict[tuple[str, str], Resource[RawObject]] = {}
        self._autoscalers = context.informers.informer(HORIZONTAL_POD_AUTOSCALERS)
        self._autoscalers.add_handlers(
            on_add=lambda found: self.queue.add(found.key),
            on_update=self._changed,
        )

    def _changed(self, old: RawObject, new: RawObject) -> None:
        if old.get("spec") != new.get("spec"):
            self.queue.add(new.key)

    async def reconcile(self, key: ObjectKey) -> None:
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None:
            return
        self.queue.add_after(key, SYNC_SECONDS)
        now = self.clock.today()
        target = await self._target(autoscaler)
        scale = None if target is None else await self._scale(target, autoscaler)
        if target is None or scale is None:
            await self._report_missing_target(autoscaler, target, now)
            return
        await self._keep_bounds(autoscaler, target, scale, now)

    async def _keep_bounds(
        self, autoscaler: RawObject, target: Resource[RawObject], scale: RawObject, now: datetime
    ) -> None:
        current = scale.get("spec", "replicas", default=0)
        decision = decide(autoscaler, current)
        conditions = conditions_of(autoscaler)
        status: dict[str, Any] = {
            "currentReplicas": current,
            "desiredReplicas": decision.replicas,
            "observedGeneration": autoscaler.metadata.generation or None,
        }
        able = ConditionUpdate(
            ABLE,
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        if decision.reason:
            await self._resize(target, scale, decision.replicas)
            text = f"New size: {decision.replicas}; reason: {decision.reason}"
            self._record_event(autoscaler, NORMAL, "SuccessfulRescale", text)
            status["lastScaleTime"] = written_time(now)
            able = able._replace(
                reason="SucceededRescale",
                message=f"the HPA controller was able to update the target scale to {decision.replicas}",
            )
        conditions = with_condition(conditions, able, now)
        conditions = with_condition(
            conditions,
            ConditionUpdate(
                TO_ZERO,
                "False",
                "NotScaledToZero",
                "the HPA controller did not scale the workload to zero",
            ),
            now,
        )
        if decision.is_disabled:
            text = "scaling is disabled since the replica count of the target is zero"
            update = ConditionUpdate(ACTIVE, "False", "ScalingDisabled", text)
            conditions = with_condition(conditions, update, now)
        elif not decision.reason:
            reason, problem = missing_metric(autoscaler)
            text = f"the HPA was unable to compute the replica count: {problem}"
            conditions = with_condition(
                conditions, ConditionUpdate(ACTIVE, "False", reason, text), now
            )
            self._record_event(autoscaler, WARNING, reason, problem)
        await self._write(autoscaler, {**status, "conditions": list(conditions)})

    async def _report_missing_target(
        self, autoscaler: RawObject, target: Resource[RawObject] | None, now: datetime
    ) -> None:
        reference = autoscaler.get("spec", "scaleTargetRef", default={})
        if target is None:
            version = GroupVersion.parse(reference.get("apiVersion") or "v1")
            problem = (
                f'no matches for kind "{reference.get("kind", "")}" in group "{version.group}"'
            )
        else:
            plural = f"{target.plural}.{target.group}" if target.group else target.plural
            problem = f'{plural} "{reference.get("name", "")}" not found'
        text = f"the HPA controller was unable to get the target's current scale: {problem}"
        condition = ConditionUpdate(ABLE, "False", "FailedGetScale", text)
        conditions = with_condition(conditions_of(autoscaler), condition, now)
        self._record_event(autoscaler, WARNING, "FailedGetScale", problem)
        await self._write(autoscaler, {"conditions": list(conditions)})

    async def _write(self, autoscaler: RawObject, status: dict[str, Any]) -> None:
        await write_status(self.client, HORIZONTAL_POD_AUTOSCALERS, autoscaler, status)

    def _record_event(self, autoscaler: RawObject, type_: str, reason: str, text: str) -> None:
        reference = reference_to(HORIZONTAL_POD_AUTOSCALERS, autoscaler)
        self._recorder.event(reference, type_, reason, reason, text)

    # --- the workload ---

    async def _target(self, autoscaler: RawObject) -> Resource[RawObject] | None:
        reference = autoscaler.get("spec", "scaleTargetRef", default={})
        wanted = (
            GroupVersion.parse(reference.get("apiVersion") or "v1").group,
            reference.get("kind") or "",
        )
        if wanted not in self._targets:
            for served in (await discover(self.client)).kinds:
                if (served.group, served.kind) == wanted:
                    self._targets[wanted] = raw_resource(
                        RawObject, served.group, served.version, served.plural, served.kind
                    )
        return self._targets.get(wanted)

    async def _scale(self, target: Resource[RawObject], autoscaler: RawObject) -> RawObject | None:
        name = autoscaler.get("spec", "scaleTargetRef", "name", default="")
        path = target.path(ObjectKey(autoscaler.metadata.namespace, name), "scale")
        try:
            return RawObject.from_json((await self.client.request("GET", path)).body)
        except ApiStatusError as error:
            if error.is_not_found:
                return None
            raise

    async def _resize(self, target: Resource[RawObject], scale: RawObject, replicas: int) -> None:
        path = target.path(scale.key, "scale")
        wanted = scale.with_value(replicas, "spec", "replicas")
        await self.client.request("PUT", path, body=wanted.to_json())
