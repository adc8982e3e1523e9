"""Answers to questions of the page: pending pods, one pod or claim explained, what-if, expressions.

They are computed from a snapshot by the same code as that of the commands. `children` runs them.
"""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from allot.api.identities import DeviceId, ObjectKey
from allot.cel import (
    COST_LIMIT,
    UNBOUNDED_COST,
    AttributeValue,
    CelCompileError,
    Origin,
    cel_device,
    compile_derived,
    compile_selector,
)
from allot.cel.compile_advice import compile_advice
from allot.cel.cost_advice import cost_problem
from allot.client import resources
from allot.dashboard.children import AnswerError
from allot.dashboard.floor_plan import FloorPlan
from allot.driver.errors import HardwareError
from allot.driver.loading import load_hardware, profiles
from allot.public.arguments import manifests_of
from allot.public.errors import ManifestError
from allot.public.loading import objects_in
from allot.questions.changes import AddObjects, Change, ChangeError
from allot.questions.hardware_objects import hardware_objects
from allot.questions.observed_cluster import KINDS, ObservedCluster
from allot.questions.pending import pending_pods
from allot.questions.what_if import carried_out
from allot.questions.written_changes import read_change
from allot.scheduler.explain.effort import Effort, within
from allot.scheduler.explain.explanation_text import claim_lines, pod_lines
from allot.scheduler.explain.explanations import NodeExplanation
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import StaticScheduler

Json = dict[str, Any]

MAX_EXPRESSION: Final = 10_240
MAX_CHANGES: Final = 50
MAX_ADDED_NODES: Final = 5_000
_PENDING_EFFORT: Final = Effort(50, 1, within(0.5, time.monotonic), 10.0)
_DETAIL_SECONDS: Final = 4.0
_EXPLAIN_EFFORT: Final = Effort(500, 2, within(1.5, time.monotonic), 10.0)
_MAX_LIT: Final = 2_000
"""Devices that light up for one cause."""


# --- pending pods ---


def pending(cluster: ObservedCluster) -> Any:
    """The pending pods by cause."""
    return pending_pods(
        cluster, effort=_PENDING_EFFORT, is_over=within(_DETAIL_SECONDS, time.monotonic)()
    )


def explain(cluster: ObservedCluster, floor: FloorPlan, kind: str, key: ObjectKey) -> Json:
    """What `allot explain` says about a pod or a claim, and the devices and nodes that it is about."""
    model = StaticScheduler(
        cluster.objects, cluster.configuration, cluster.gates, lambda: cluster.now
    )
    explainer = ObjectExplainer(model, _EXPLAIN_EFFORT)
    nodes: tuple[NodeExplanation, ...]
    if kind == "pod":
        pod = model.pods.get(key)
        if pod is None:
            raise AnswerError(f"pod {key} does not exist")
        found = explainer.of_pod(pod)
        lines = pod_lines(found, cluster.now)
        verdict, nodes, proposals = found.verdict, found.nodes, found.proposals
    else:
        claim = model.claims.get(key)
        if claim is None:
            raise AnswerError(f"claim {key} does not exist")
        about = explainer.of_claim(claim)
        lines = claim_lines(about, cluster.now)
        verdict, nodes, proposals = about.verdict, about.nodes, about.proposals
    return {
        "verdict": verdict,
        "lines": [{"text": line.text.plain, "indent": line.indent} for line in lines],
        "nodes": [
            {
                "node": node.node,
                "reasons": node.reasons,
                "summary": node.summary,
                "details": node.details,
                "requests": [_request(floor, request) for request in node.requests],
            }
            for node in nodes
        ],
        "proposals": [{"node": each.node, "change": each.change} for each in proposals],
        "devices": _numbers(
            floor,
            (
                device
                for node in nodes
                for request in node.requests
                for refusal in request.refusals
                if not refusal.because.is_wrong_class
                for device in refusal.devices
            ),
        ),
    }


def _request(floor: FloorPlan, request: Any) -> Json:
    return {
        "claim": request.claim,
        "request": request.request,
        "wanted": request.wanted,
        "found": request.found,
        "problem": request.problem,
        "refusals": [
            {
                "reason": refusal.reason,
                "count": len(refusal.devices),
                "devices": _numbers(floor, refusal.devices),
            }
            for refusal in request.refusals
        ],
    }


def _numbers(floor: FloorPlan, names: Any) -> list[int]:
    """Numbers of devices that are named `driver/pool/device`."""
    found: dict[int, None] = {}
    for name in names:
        number = floor.number_of(DeviceId(*_parts(name)))
        if number is not None:
            found[number] = None
        if len(found) >= _MAX_LIT:
            break
    return list(found)


def _parts(name: str) -> tuple[str, str, str]:
    driver, _, rest = name.partition("/")
    pool, _, device = rest.rpartition("/")  # names of pools may have slashes
    return driver, pool, device


# --- what-if ---


class AskedChange(msgspec.Struct, frozen=True):
    """One change, as the page asks for it: `add` hardware, `drain`, `taint`, `scale`, `remove`, `evict`, `manifest`."""

    kind: str
    value: str


def what_if(
    cluster: ObservedCluster, floor: FloorPlan, asked: list[AskedChange], namespace: str
) -> Json:
    """What the changes would do, and the floor plan after them. Changes `floor`: for use in a child."""
    if not asked:
        raise AnswerError("say what would change")
    if len(asked) > MAX_CHANGES:
        raise AnswerError(f"at most {MAX_CHANGES} changes")
    try:
        changes = [_asked_change(each, namespace, number) for number, each in enumerate(asked)]
        answer, model = carried_out(cluster, changes)
    except (ChangeError, HardwareError, ManifestError) as error:
        raise AnswerError(str(error)) from None
    return {"answer": answer, "floor": floor.changed_to(cluster.objects, model.objects)}


def _asked_change(asked: AskedChange, namespace: str, number: int) -> Change:
    """The change; `ChangeError`, `HardwareError` or `ManifestError`. Files of the server cannot be named."""
    value = asked.value.strip()
    match asked.kind:
        case "add":
            return _hardware(value, f"-new{number or ''}")
        case "manifest":
            snapshot = objects_in(manifests_of([asked.value]), KINDS)
            found = tuple((kind, obj) for kind in KINDS for obj in snapshot.of(kind))
            if not found:
                raise ChangeError("the manifest has no object that scheduling depends on")
            names = ", ".join(f"{kind.kind.lower()}/{obj.metadata.name}" for kind, obj in found[:3])
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            return AddObjects(f"apply {names}{more}", found)
    return read_change(asked.kind, value, namespace)


def _hardware(value: str, suffix: str) -> AddObjects:
    name, _, count = value.partition("=")
    if name not in profiles():
        raise ChangeError(f"no profile {name[:100]}; available: {', '.join(profiles())}")
    if count and not (count.isdecimal() and 0 < int(count) <= MAX_ADDED_NODES):
        raise ChangeError(f"{count[:20]}: expected a number of nodes up to {MAX_ADDED_NODES}")
    objects = tuple(hardware_objects(load_hardware(value, suffix=suffix)))
    return AddObjects(f"add {value}", objects, must_be_new=True)


# --- expressions ---


def try_expression(
    cluster: ObservedCluster, floor: FloorPlan, expression: str, *, is_derived: bool
) -> Json:
    """The type, cost and value of an expression on every device, or what is wrong with it."""
    if len(expression) > MAX_EXPRESSION:
        raise AnswerError(f"the expression is longer than {MAX_EXPRESSION} characters")
    compile_ = compile_derived if is_derived else compile_selector
    try:
        program = compile_(expression, Origin.NEW, cluster.gates)
    except CelCompileError as error:
        advice = compile_advice(error.text).removeprefix("; ")
        return {"error": error.text, "advice": advice}
    texts: dict[str, int] = {}
    devices: list[tuple[int, int, int]] = []
    errors: dict[str, int] = {}
    for slice_ in cluster.objects.of(resources.RESOURCE_SLICES):
        spec = slice_.spec
        for device in spec.devices or ():
            number = floor.number_of(spec.device_id(device))
            if number is None:
                continue  # of an older generation
            outcome = program.evaluate(
                cel_device(
                    spec.driver,
                    device.name,
                    device.attributes,
                    device.capacity,
                    device.allow_multiple_allocations,
                )
            )
            if outcome.error is not None:
                errors[outcome.error] = errors.get(outcome.error, 0) + 1
            text = (
                _value_text(outcome.value) if outcome.error is None else f"error: {outcome.error}"
            )
            devices.append((number, texts.setdefault(text, len(texts)), outcome.cost))
    is_bounded = program.max_cost != UNBOUNDED_COST
    return {
        "type": str(program.output_type),
        "maxCost": program.max_cost if is_bounded else None,
        "costLimit": COST_LIMIT,
        "problem": cost_problem(program) or "",
        "values": list(texts),
        "devices": devices,
        "errors": errors,
    }


def _value_text(value: Any) -> str:
    if isinstance(value, AttributeValue):
        value = next((each for each in value if each not in (None, ())), ())
    return msgspec.json.encode(value).decode()
