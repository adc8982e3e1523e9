"""A plan: what manifests would do if they were applied now. For pipelines, before they are.

Lint first; then the manifests are applied to a model of the cluster: does every pod of them get a node, does a quota
refuse some, and what does it cost others. Findings have the place of the object in its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from allot.allocation.explain.amounts import counted
from allot.api.base import ApiObject, always
from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.lint.findings import Finding, Report, Rule, Severity
from allot.lint.known_objects import KnownObjects
from allot.lint.linter import Linter
from allot.lint.manifests import Manifest, Unreadable
from allot.questions.changes import AddObjects
from allot.questions.cluster_model import ClusterModel
from allot.questions.device_usage import UsageFigures
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.pod_owners import PodOwners
from allot.questions.pod_templates import PodTemplate, pod_templates
from allot.questions.what_if import Effect, PodEffect, carried_out, why_waiting

DOES_NOT_FIT: Final = Rule(
    "plan-pod-pending",
    Severity.ERROR,
    "A pod would stay pending",
    "No node of the cluster takes the pod now. Ask for less, or make room: `allot what-if` tries changes.",
)
QUOTA: Final = Rule(
    "plan-quota-exceeded",
    Severity.ERROR,
    "A ResourceQuota refuses a pod",
    "The namespace has no quota left for the pod. Raise the quota, or run fewer pods.",
)
COSTS_OTHERS: Final = Rule(
    "plan-disrupts-others",
    Severity.WARNING,
    "Pods of others lose their place",
    "Pods of higher priority preempt others. Lower the priority, or add capacity.",
)
_LINTED: Final[tuple[Resource[Any], ...]] = (
    resources.DEVICE_CLASSES,
    resources.RESOURCE_SLICES,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_CLAIM_TEMPLATES,
    resources.DEVICE_TAINT_RULES,
)
"""What rules of lint look up in the cluster."""
RULES: Final = (DOES_NOT_FIT, QUOTA, COSTS_OTHERS)


class PlannedWorkload(ApiObject, frozen=True):
    """A pod or workload of the manifests."""

    name: str = always(str)
    namespace: str = always(str)
    wanted: int = always(int)
    running: int = always(int)
    waiting: int = always(int)
    reason: str = ""
    """Why pods wait, or are refused."""


class PlanAnswer(ApiObject, frozen=True):
    """What would happen."""

    workloads: tuple[PlannedWorkload, ...] = always(tuple)
    others: tuple[PodEffect, ...] = always(tuple)
    """Pods that are not of the manifests, and lose or change their place."""
    devices_before: UsageFigures = always(UsageFigures)
    devices_after: UsageFigures = always(UsageFigures)
    errors: int = always(int)
    warnings: int = always(int)
    notes: tuple[str, ...] = ()


def plan(
    cluster: ObservedCluster,
    manifests: Sequence[Manifest | Unreadable],
    given: Snapshot,
    *,
    is_live: bool = True,
) -> tuple[PlanAnswer, Report]:
    """The plan, and all findings. `given` are the objects in the manifests; `is_live`: the cluster is complete."""
    report = Linter(cluster.gates, new_known=lambda: _known(cluster, is_live=is_live)).check(
        manifests
    )
    readable = [each for each in manifests if isinstance(each, Manifest)]
    objects = tuple((kind, obj) for kind in KINDS for obj in given.of(kind))
    answer, model = carried_out(cluster, [AddObjects("apply", objects)])
    planned = tuple(_planned(model, pod_templates(given)))
    owners = {f"{_kind(each)}/{each.namespace}/{_name(each)}" for each in planned}
    others = tuple(_others(model, answer.effects, owners))
    findings = [*report.findings, *_findings(planned, others, readable)]
    report = report._replace(findings=findings)
    return (
        PlanAnswer(
            workloads=planned,
            others=others,
            devices_before=answer.devices_before,
            devices_after=answer.devices_after,
            errors=report.errors,
            warnings=report.warnings,
            notes=answer.notes,
        ),
        report,
    )


def _known(cluster: ObservedCluster, *, is_live: bool) -> KnownObjects:
    known = KnownObjects(is_live=is_live)
    for resource in _LINTED:
        for obj in cluster.objects.of(resource):
            known.add(obj)
    for namespace in cluster.objects.of(resources.NAMESPACES):
        known.namespace_labels[namespace.metadata.name] = namespace.metadata.labels
    return known


def _planned(model: ClusterModel, templates: Iterable[PodTemplate]) -> Iterator[PlannedWorkload]:
    names = PodOwners(model.objects)
    pods_by_owner: dict[str, list[bool]] = {}
    reasons: dict[str, str] = {}
    for pod in model.objects.of(resources.PODS):
        if pod.is_finished:
            continue
        owner = names.name_of(pod)
        pods_by_owner.setdefault(owner, []).append(bool(pod.node_name))
        if not pod.node_name and owner not in reasons:
            reasons[owner] = why_waiting(model, pod)
    refused = _refused(model)
    for template in templates:
        kind, _, name = template.name.partition("/")
        namespace = template.pod.key.namespace or "default"
        owner = f"{kind}/{namespace}/{name}"
        placed = pods_by_owner.get(owner, [])
        yield PlannedWorkload(
            name=template.name,
            namespace=namespace,
            wanted=_nodes_of(model, owner) if kind == "daemonset" else template.replicas,
            running=sum(placed),
            waiting=len(placed) - sum(placed),
            reason=refused.get(owner) or reasons.get(owner, ""),
        )


def _nodes_of(model: ClusterModel, owner: str) -> int:
    """A DaemonSet wants a pod on each node that it selects."""
    names = PodOwners(model.objects)
    return sum(names.name_of(pod) == owner for pod in model.objects.of(resources.PODS))


def _refused(model: ClusterModel) -> Mapping[str, str]:
    """Why workloads could not create all pods, by the workload at the top."""
    found: dict[str, str] = {}
    for (kind, key), why in model.workloads.refused.items():
        owner = f"{kind.lower()}/{key.namespace}/{key.name}"
        if kind == "ReplicaSet":
            replica_set = model.objects.get(resources.REPLICA_SETS, key)
            references = replica_set.metadata.owner_references if replica_set is not None else ()
            for reference in references:
                owner = f"{reference.kind.lower()}/{key.namespace}/{reference.name}"
        found[owner] = why
    return found


def _others(
    model: ClusterModel, effects: Iterable[PodEffect], owners: set[str]
) -> Iterator[PodEffect]:
    names = PodOwners(model.objects)
    for effect in effects:
        namespace, _, name = effect.pod.partition("/")
        pod = model.objects.get(resources.PODS, ObjectKey(namespace, name))
        owner = names.name_of(pod) if pod is not None else f"pod/{effect.pod}"
        if owner not in owners and effect.effect is not Effect.STARTS:
            yield effect


# --- findings ---


def _findings(
    planned: Iterable[PlannedWorkload], others: Sequence[PodEffect], manifests: Sequence[Manifest]
) -> Iterator[Finding]:
    for workload in planned:
        missing = workload.wanted - workload.running
        if missing <= 0:
            continue
        is_quota = "exceeded quota" in workload.reason or "failed quota" in workload.reason
        rule = QUOTA if is_quota else DOES_NOT_FIT
        message = f"{missing} of {counted(workload.wanted, 'pod')} would not run: {workload.reason}"
        yield _finding(rule, workload, message, manifests)
    lost = [each for each in others if each.before]
    if lost:
        names = ", ".join(each.pod for each in lost[:3])
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        message = f"{counted(len(lost), 'pod')} of others would lose their place: {names}{more}"
        source = manifests[0].source if manifests else ""
        yield Finding(COSTS_OTHERS.id, COSTS_OTHERS.severity, source, 1, 1, "", "", message)


def _finding(
    rule: Rule, workload: PlannedWorkload, message: str, manifests: Iterable[Manifest]
) -> Finding:
    kind, name = _kind(workload), _name(workload)
    for manifest in manifests:
        if manifest.kind.lower() == kind and manifest.name == name:
            shown = f"{manifest.kind}/{name}"
            place = manifest.place
            return Finding(
                rule.id,
                rule.severity,
                manifest.source,
                place.line,
                place.column,
                shown,
                "",
                message,
            )
    return Finding(rule.id, rule.severity, "", 1, 1, workload.name, "", message)


def _kind(workload: PlannedWorkload) -> str:
    return workload.name.partition("/")[0]


def _name(workload: PlannedWorkload) -> str:
    return workload.name.partition("/")[2]


# --- Markdown ---


def markdown(answer: PlanAnswer, report: Report) -> str:
    """A summary for a pull request."""
    is_fine = not answer.errors
    lines = ["## allot plan", ""]
    lines.append("All pods would run." if is_fine else "**Some of it would not work.**")
    if answer.workloads:
        lines += ["", "| workload | pods | would run | why not |", "| --- | ---: | ---: | --- |"]
        lines += (
            f"| {each.name} | {each.wanted} | {each.running} | {_cell(each.reason) if each.running < each.wanted else ''} |"
            for each in answer.workloads
        )
    if report.findings:
        lines += ["", "| | where | finding |", "| --- | --- | --- |"]
        lines += (
            f"| {each.severity} | {_cell(each.source)}:{each.line} | {_cell(each.message)} |"
            for each in report.findings
        )
    before, after = answer.devices_before, answer.devices_after
    held = f"{before.held} of {before.devices} before, {after.held} of {after.devices} after"
    share = f"{100 * before.utilisation:.1f} % → {100 * after.utilisation:.1f} %"
    lines += ["", f"Devices held: {held} (utilisation {share})."]
    if answer.others:
        lines += ["", "| pod of others | effect | before | after |", "| --- | --- | --- | --- |"]
        lines += (
            f"| {each.pod} | {each.effect} | {each.before} | {each.after} |"
            for each in answer.others
        )
    lines += ["", *(f"- note: {note}" for note in answer.notes)] if answer.notes else []
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
