"""`allot explain`: what a pod or a claim is doing, why, and what would help."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from allot.api.identities import ObjectKey
from allot.api.similar_names import did_you_mean, similar_names
from allot.cli.at_option import Moment
from allot.cli.cluster_gates import gates_of_cluster
from allot.cli.console import PrintableConsole, printable_text
from allot.cli.errors import EXIT_OK, CommandError
from allot.cli.scheduler_configuration import load_configuration
from allot.cli.snapshots import (
    SnapshotSource,
    namespace_of,
    take,
)
from allot.cli.tables import print_document
from allot.client import resources
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.client.server_gates import API_SERVER, SCHEDULER
from allot.client.snapshot import Snapshot
from allot.client.wall_clock import utc_now
from allot.rules import RuleSet
from allot.scheduler.explain.alternatives import recorded_reasons
from allot.scheduler.explain.effort import Effort, within
from allot.scheduler.explain.explanation_text import Line, claim_lines, pod_lines, wrapped
from allot.scheduler.explain.explanations import (
    ClaimExplanation,
    ClaimSummary,
    PodExplanation,
    PodState,
)
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import (
    DEVICE_KINDS,
    VOLUME_KINDS,
    WORKLOAD_KINDS,
    StaticScheduler,
)

EFFORT: Final = Effort(5_000, 2, within(1.5, time.monotonic), 10.0)
_KINDS: Final[dict[str, Resource[Any]]] = {
    "pod": resources.PODS,
    "pods": resources.PODS,
    "po": resources.PODS,
    "claim": resources.RESOURCE_CLAIMS,
    "claims": resources.RESOURCE_CLAIMS,
    "resourceclaim": resources.RESOURCE_CLAIMS,
    "resourceclaims": resources.RESOURCE_CLAIMS,
    "resourceclaims.resource.k8s.io": resources.RESOURCE_CLAIMS,
}
WORKLOAD_NAMES: Final[dict[str, Resource[Any]]] = {
    name: resource
    for resource, short in (
        (resources.DEPLOYMENTS, "deploy"),
        (resources.REPLICA_SETS, "rs"),
        (resources.STATEFUL_SETS, "sts"),
        (resources.DAEMON_SETS, "ds"),
        (resources.JOBS, "job"),
    )
    for name in (resource.kind.lower(), resource.plural, short)
}
EVENTS: Final[tuple[Resource[Any], ...]] = (resources.EVENTS,)
_PENDING_KINDS: Final[tuple[Resource[Any], ...]] = (
    resources.CORE_EVENTS,
    resources.RESOURCE_QUOTAS,
)
"""Also read for a pod without a node: its events, and quotas that may prevent its claims."""
_OPTIONAL: Final = frozenset({resources.DEVICE_TAINT_RULES})
"""Not served by most clusters; no note if missing."""
_DECISIVE: Final[tuple[Resource[Any], ...]] = (
    resources.NODES,
    resources.RESOURCE_SLICES,
    resources.DEVICE_CLASSES,
)
"""Without these nothing true can be said about why a pod has no node."""
_HOLDING: Final[tuple[Resource[Any], ...]] = (resources.RESOURCE_CLAIMS, resources.PODS)
"""Kinds that hold devices and room on nodes: if some are not read, more seems to fit than does."""
_UNDECIDED: Final = (PodState.GATED, PodState.FITS, PodState.DOES_NOT_FIT, PodState.FAILED)


BY_KUBERNETES: Final = (
    "these are the answers of Kubernetes v1.38; for those of allot's scheduler: --rules seeds"
)


class ExplainTarget(NamedTuple):
    """The object to explain."""

    resource: Resource[Any]
    name: str

    @property
    def word(self) -> str:
        return "pod" if self.resource is resources.PODS else "claim"


def explain_object(
    *,
    what: tuple[str, ...],
    namespace: str | None,
    all_pending: bool,
    all_namespaces: bool,
    selector: str,
    sources: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    at: Moment | None,
    scheduler_name: str,
    scheduler_config: Path | None,
    output: str,
    everything: bool,
    width: int | None,
    feature_gates: str,
    rules: RuleSet | None,
) -> int:
    """The command `allot explain`: explains the object that the arguments name."""
    if all_pending or is_workload(what):
        from allot.cli.pending import explain_pending
        from allot.cli.question_options import ClusterArguments

        cluster = ClusterArguments(
            sources, (), kubeconfig, context, scheduler_config, feature_gates, rules, at
        )
        everywhere = None if all_namespaces else namespace or cluster.namespace
        return explain_pending(cluster, what, everywhere, selector, output, width)
    if all_namespaces or selector:
        raise CommandError("-A and -l go with --all-pending")
    if not what:
        raise CommandError("say pod/NAME, claim/NAME or deployment/NAME, or --all-pending")
    target = read_target(what)
    configuration = load_configuration(scheduler_config, rules)
    source = SnapshotSource(sources, kubeconfig, context, at)
    key = ObjectKey(namespace or namespace_of(source), target.name)
    kinds = (*DEVICE_KINDS, *(WORKLOAD_KINDS if scheduler_config else ()))
    if sources:
        kinds = (*kinds, *VOLUME_KINDS, *_PENDING_KINDS, *EVENTS)
    pages = (SCHEDULER, API_SERVER)
    snapshot = take(source, kinds, "allot-explain", key.namespace, gate_pages=pages)
    if not sources:
        _add_more(snapshot, source, target, key)
    now = snapshot.time or utc_now()
    known = gates_of_cluster(snapshot, source, feature_gates, configuration.rules)
    model = StaticScheduler(snapshot, configuration, known.gates, lambda: now)
    if scheduler_name and scheduler_name not in model.profiles:
        raise CommandError(
            f"no scheduler {scheduler_name} in the configuration;"
            f" available: {', '.join(model.profiles)}"
        )
    explainer = ObjectExplainer(
        model, EFFORT, scheduler_name, is_configured=scheduler_config is not None
    )
    explanation = explained(target, key, model, explainer)
    if not sources and _has_better_alternatives(explanation):
        in_namespace = {resources.EVENTS: Scope(key.namespace)}
        _add(snapshot, take(source, EVENTS, "allot-explain", scopes=in_namespace), EVENTS)
        explanation = _with_recorded(explanation, snapshot, key.namespace)
    notes = [*([known.assumption] if known.assumption else []), *snapshot.notes]
    if known.rules is RuleSet.V1_38:
        notes.append(BY_KUBERNETES)
    explanation = msgspec.structs.replace(
        explanation,
        rules=known.rules,
        feature_gates_of=known.source,
        notes=(*explanation.notes, *notes),
    )
    if output == "text":
        print_lines(_lines(explanation, now, everything=everything), width)
    else:
        print_document(explanation, output)
    return EXIT_OK


def is_workload(what: Iterable[str]) -> bool:
    """Whether a workload is named, such as `deployment/web`."""
    return next(iter(what), "").partition("/")[0].lower() in WORKLOAD_NAMES


def read_target(what: Iterable[str]) -> ExplainTarget:
    """`pod/NAME`, or as kubectl also takes it, `pod NAME`; `CommandError` for anything else."""
    parts = "/".join(what).split("/")
    if len(parts) != 2 or not all(parts):
        raise CommandError(f"{' '.join(what)}: say pod/NAME or claim/NAME")
    resource = _KINDS.get(parts[0].lower())
    if resource is None:
        raise CommandError(f"{parts[0]}: only pods, claims and workloads can be explained")
    return ExplainTarget(resource, parts[1])


def explained(
    target: ExplainTarget, key: ObjectKey, model: StaticScheduler, situations: ObjectExplainer
) -> PodExplanation | ClaimExplanation:
    """`CommandError` if the object does not exist."""
    notes = tuple(_unread(model.snapshot))
    if target.resource is resources.PODS:
        pod = model.pods.get(key)
        if pod is not None:
            found = _as_far_as_read(situations.of_pod(pod), model.snapshot)
            return msgspec.structs.replace(found, notes=(*found.notes, *notes))
    else:
        claim = model.claim(key)
        if claim is not None:
            answer = situations.of_claim(claim)
            return msgspec.structs.replace(answer, notes=(*answer.notes, *notes))
    raise CommandError(_not_found(target, key, model.snapshot))


def _not_found(target: ExplainTarget, key: ObjectKey, snapshot: Snapshot) -> str:
    message = f"no {target.word} {key.name} in namespace {key.namespace}"
    why = snapshot.unread.get(target.resource)
    if why:
        return f"{message} can be read: {why}"
    known = [obj.metadata for obj in snapshot.of(target.resource)]
    elsewhere = [meta.namespace for meta in known if meta.name == key.name]
    if elsewhere:
        return f"{message}; there is one in {', '.join(sorted(elsewhere))} (-n)"
    near = [meta.name for meta in known if meta.namespace == key.namespace]
    return message + did_you_mean(similar_names(key.name, near))


def _as_far_as_read(found: PodExplanation, snapshot: Snapshot) -> PodExplanation:
    """No verdict that depends on objects which the user may not read."""
    hidden = [
        resource.plural
        for resource in _DECISIVE
        if resource in snapshot.unread and not snapshot.of(resource)
    ]
    if not hidden and found.state is PodState.FITS:
        return _by_what_was_read(found, snapshot)
    if not hidden or found.state not in _UNDECIDED:
        return found
    verdict = (
        f"Why pod {found.pod} is pending cannot be told: {', '.join(hidden)} could not be read. "
        "A role that lets you get, list and watch them is needed."
    )
    return PodExplanation(
        pod=found.pod,
        state=PodState.FAILED,
        verdict=verdict,
        claims=found.claims,
        notes=found.notes,
    )


def _by_what_was_read(found: PodExplanation, snapshot: Snapshot) -> PodExplanation:
    """That a pod fits, unless objects that the user may not read are in the way."""
    hidden = [resource.plural for resource in _HOLDING if resource in snapshot.unread]
    if not hidden:
        return found
    verdict = (
        f"Pod {found.pod} fits on node {found.node} by what you may read: not all"
        f" {' and '.join(hidden)} could be read, and what the others hold looks free here."
        " A role that lets you list them in all namespaces is needed to tell."
    )
    return msgspec.structs.replace(found, verdict=verdict)


def _unread(snapshot: Snapshot) -> Iterable[str]:
    for resource, why in snapshot.unread.items():
        if resource not in _OPTIONAL:
            note = f"{resource.plural} could not be read: {why}"
            if resource is resources.RESOURCE_CLAIMS:
                note += "; devices that other claims hold look free here"
            yield note


def _summaries(explanation: PodExplanation | ClaimExplanation) -> Iterable[ClaimSummary]:
    if isinstance(explanation, PodExplanation):
        return explanation.claims
    return filter(None, (explanation.summary,))


def _has_better_alternatives(explanation: PodExplanation | ClaimExplanation) -> bool:
    return any(claim.preferred for claim in _summaries(explanation))


def _with_recorded(
    explanation: PodExplanation | ClaimExplanation, snapshot: Snapshot, namespace: str
) -> PodExplanation | ClaimExplanation:
    """The explanation, with the scheduler's events about better alternatives."""
    users = {
        user.removeprefix("pod/")
        for claim in _summaries(explanation)
        for user in claim.reserved_for
        if user.startswith("pod/")
    }
    events = snapshot.of(resources.EVENTS)
    notes = tuple(
        f"When it was decided: {text}"
        for pod in sorted(users)
        for text in recorded_reasons(events, namespace, pod)
    )
    return msgspec.structs.replace(explanation, notes=(*explanation.notes, *notes))


def _add_more(
    snapshot: Snapshot, source: SnapshotSource, target: ExplainTarget, key: ObjectKey
) -> None:
    """Read what only some pods need: volumes, and for those without a node events and quotas."""
    pod = snapshot.get(resources.PODS, key) if target.resource is resources.PODS else None
    if pod is None and target.resource is resources.PODS:
        return
    kinds: tuple[Resource[Any], ...] = ()
    if pod is not None and _has_volumes(snapshot, key):
        kinds += VOLUME_KINDS
    if pod is None or not pod.node_name:
        kinds += _PENDING_KINDS
    if kinds:
        about = f"involvedObject.name={key.name}" if pod is not None else ""
        scopes: dict[Resource[Any], Scope] = {
            resources.CORE_EVENTS: Scope(key.namespace, field_selector=about),
            resources.RESOURCE_QUOTAS: Scope(key.namespace),
        }
        _add(snapshot, take(source, kinds, "allot-explain", key.namespace, scopes), kinds)


def _has_volumes(snapshot: Snapshot, key: ObjectKey) -> bool:
    pod = snapshot.get(resources.PODS, key)
    return pod is not None and bool(pod.get("spec", "volumes", default=()))


def _add(snapshot: Snapshot, more: Snapshot, kinds: Iterable[Resource[Any]]) -> None:
    for kind in kinds:
        for obj in more.of(kind):
            snapshot.put(kind, obj)
    snapshot.unread.update(more.unread)


def _lines(
    explanation: PodExplanation | ClaimExplanation, now: datetime, *, everything: bool
) -> Iterable[Line]:
    if isinstance(explanation, PodExplanation):
        return pod_lines(explanation, now, everything=everything)
    return claim_lines(explanation, now, everything=everything)


def print_lines(lines: Iterable[Line], width: int | None = None) -> None:
    """Wrap lines to `width`, or without it to that of the terminal; output to other programs is not wrapped."""
    console = PrintableConsole(width=width)
    is_wrapped = width is not None or sys.stdout.isatty()
    for line in lines:
        shown = line._replace(text=printable_text(line.text, is_line=True))
        for text in wrapped(shown, console, console.width if is_wrapped else None):
            for printed in console.lines(text, soft_wrap=True):
                click.echo(printed)
