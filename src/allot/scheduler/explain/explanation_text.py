"""Explanations as text: the verdict, what would help, then why, node by node.

Short by default: devices of other classes and repetitions are left out. `everything` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from allot.allocation.explain.amounts import counted
from allot.api.base import replace
from allot.api.durations import human_duration
from allot.api.times import written_time
from allot.scheduler.explain.explanations import (
    ClaimExplanation,
    ClaimState,
    ClaimSummary,
    DeviceSummary,
    EarlierFailure,
    LackingCondition,
    NodeExplanation,
    PodExplanation,
    PodState,
    Proposed,
    RequestExplanation,
)
from allot.scheduler.explain.node_groups import NodeGroup, alike, refusals_in, shared_text

MAX_GROUPS: Final = 5
MAX_REASONS: Final = 4
"""Reasons that are shown for one request."""
MAX_NAMES: Final = 3
MAX_PROPOSALS: Final = 6
HANG: Final = 4
MIN_WIDTH: Final = 20

_GOOD: Final = frozenset({PodState.SCHEDULED, PodState.FINISHED, PodState.FITS})
_SHOWN_STATES: Final = {
    ClaimState.ALLOCATED: "allocated",
    ClaimState.PENDING: "not allocated",
    ClaimState.UNUSED: "not allocated",
    ClaimState.TERMINATING: "being deleted",
    ClaimState.MISSING: "not there",
}


class Line(NamedTuple):
    """A line of text, wrapped with a hanging indent."""

    indent: int
    text: Text


BLANK: Final = Line(0, Text(""))


def pod_lines(
    explanation: PodExplanation, now: datetime, *, everything: bool = False
) -> Iterator[Line]:
    """The explanation of a pod."""
    yield Line(0, Text(explanation.verdict, _style(explanation.state)))
    times = list(_times(explanation, now))
    if times:
        yield Line(0, Text(", ".join(times)))
    for failure in explanation.earlier_failures:
        yield Line(0, _earlier(failure, now))
    yield from _what_helps(explanation.proposals, explanation.nodes, everything)
    yield from _notes(explanation.notes)
    if explanation.claims:
        yield from _heading(_claims_heading(explanation))
        for claim in explanation.claims:
            yield from _claim(claim, now)
    yield from _why(explanation.nodes, everything)


def claim_lines(
    explanation: ClaimExplanation, now: datetime, *, everything: bool = False
) -> Iterator[Line]:
    """The explanation of a claim."""
    is_good = explanation.state is ClaimState.ALLOCATED
    yield Line(0, Text(explanation.verdict, "bold green" if is_good else "bold"))
    yield from _what_helps(explanation.proposals, explanation.nodes, everything)
    yield from _notes(explanation.notes)
    summary = explanation.summary
    if summary is not None and summary.devices:
        would = explanation.state is ClaimState.UNUSED
        yield from _heading("Devices it would get" if would else "Devices")
        yield from _devices(summary.devices, 2, now)
        yield from _preferred(summary, 2)
    for pod in explanation.pods:
        yield BLANK
        others = tuple(claim for claim in pod.claims if claim.claim != explanation.claim)
        yield from pod_lines(replace(pod, claims=others), now, everything=everything)
    yield from _why(explanation.nodes, everything)


def _style(state: PodState) -> str:
    if state in _GOOD:
        return "bold green"
    return "bold yellow" if state is PodState.WAITING_FOR_DEVICES else "bold red"


def _heading(text: str) -> Iterator[Line]:
    yield BLANK
    yield Line(0, Text(text, "bold"))


def _notes(notes: Iterable[str]) -> Iterator[Line]:
    shown = list(notes)
    if shown:
        yield BLANK
        yield from (Line(0, Text(f"Note: {note}", "dim")) for note in shown)


# --- times ---


def _times(explanation: PodExplanation, now: datetime) -> Iterator[str]:
    word = "Waiting since" if explanation.state not in _GOOD else "Since"
    if explanation.state is PodState.FITS:
        word = "Waiting since"
    if explanation.since is not None:
        yield f"{word} {written_time(explanation.since)} ({_span(now, explanation.since)} ago)"
    deadline = explanation.deadline
    if deadline is not None:
        left = f"{_span(deadline, now)} left" if deadline > now else "over"
        assumed = explanation.assumed_timeout_seconds
        if assumed:
            left += f", assuming a bindingTimeout of {assumed:g} s"
        yield f"until {written_time(deadline)} at most ({left})"


def _earlier(failure: EarlierFailure, now: datetime) -> Text:
    """An attempt before this one."""
    details = []
    if failure.last_at is not None:
        details.append(f"{_span(now, failure.last_at)} ago")
    if failure.count > 1:
        details.append(f"{failure.count} times")
    when = f" ({', '.join(details)})" if details else ""
    return Text(f"Failed before{when}: {failure.message}", "yellow")


def _span(later: datetime, earlier: datetime) -> str:
    return human_duration(max((later - earlier).total_seconds(), 0.0))


# --- claims ---


def _claims_heading(explanation: PodExplanation) -> str:
    would = any(claim.devices and claim.state is ClaimState.PENDING for claim in explanation.claims)
    return "Claims, with the devices they would get" if would else "Claims"


def _claim(claim: ClaimSummary, now: datetime) -> Iterator[Line]:
    text = Text(claim.claim, "bold")
    if claim.name:
        text = Text.assemble(f"{claim.name}: ", text)
    text.append(f" ({_SHOWN_STATES[claim.state]}")
    if claim.allocated_at is not None:
        text.append(f" {_span(now, claim.allocated_at)} ago")
    text.append(")")
    yield Line(2, text)
    yield from _devices(claim.devices, 4, now)
    yield from _preferred(claim, 4)


def _devices(devices: Iterable[DeviceSummary], indent: int, now: datetime) -> Iterator[Line]:
    for device in devices:
        text = Text(f"{device.request}: {device.device}")
        parts = [f"{amount} of {name}" for name, amount in device.consumed_capacity.items()]
        if device.share_id:
            parts.append(f"share {device.share_id}")
        if device.admin_access:
            parts.append("admin access")
        if parts:
            text.append(f" ({', '.join(parts)})")
        yield Line(indent, text)
        if device.failure:
            yield Line(indent + 2, Text(f"failed: {device.failure}", "red"))
        for condition in device.conditions if not device.failure else ():
            yield Line(indent + 2, Text(f"not ready: {_condition(condition, now)}", "yellow"))


def _condition(condition: LackingCondition, now: datetime) -> str:
    if not condition.status:
        return f"{condition.type} was never reported"
    why = ": ".join(filter(None, (condition.reason, condition.message)))
    text = f"{condition.type} is {condition.status}{f' ({why})' if why else ''}"
    return f"{text} for {_span(now, condition.since)}" if condition.since is not None else text


def _preferred(claim: ClaimSummary, indent: int) -> Iterator[Line]:
    """Preferred alternatives, and why they are not available now."""
    for each in claim.preferred:
        text = Text.assemble("not ", (each.request, "bold"), ", which comes before: ")
        if each.reason:
            text.append(f"now, {each.reason}")
        else:
            text.append(f"it was not available then; now it is, on node {each.node}")
        yield Line(indent, text)


# --- what would help ---


def _what_helps(
    proposals: Sequence[Proposed], nodes: Sequence[NodeExplanation], everything: bool
) -> Iterator[Line]:
    if not proposals:
        return
    yield from _heading("What would help, each alone")
    groups = alike(_shown_nodes(nodes, everything))
    for node, found in groupby(proposals, lambda each: each.node):
        group = next((each for each in groups if node in each.names), None)
        number = len(group.nodes) - 1 if group is not None else 0
        like = f" ({number} more look{'s' * (number == 1)} like it)" if number else ""
        yield Line(2, Text.assemble("on ", (f"node {node}", "bold cyan"), like))
        changes = [each.change for each in found]
        shown = len(changes) if everything else MAX_PROPOSALS
        for change in changes[:shown]:
            yield Line(4, Text.assemble(("- ", "green"), change))
        if len(changes) > shown:
            yield Line(4, Text(f"- … and {len(changes) - shown} more; --all shows them"))


# --- why not ---


def _why(nodes: Sequence[NodeExplanation], everything: bool) -> Iterator[Line]:
    if not nodes:
        return
    yield from _heading("Why, node by node")
    groups = alike(_shown_nodes(nodes, everything))
    shown = len(groups) if everything else MAX_GROUPS
    for group in groups[:shown]:
        yield from _group(group, everything)
    number = sum(len(group.nodes) for group in groups[shown:])
    if number:
        yield Line(2, Text(f"… and {counted(number, 'more node')}; --all shows them"))


def _shown_nodes(nodes: Sequence[NodeExplanation], everything: bool) -> Sequence[NodeExplanation]:
    """The nodes in the short form."""
    return nodes if everything else [_without_other_classes(node) for node in nodes]


def _without_other_classes(node: NodeExplanation) -> NodeExplanation:
    requests = tuple(
        replace(
            request,
            refusals=tuple(each for each in request.refusals if not each.because.is_wrong_class),
        )
        for request in node.requests
    )
    return replace(node, requests=requests)


def _group(group: NodeGroup, everything: bool) -> Iterator[Line]:
    first, several = group.nodes[0], len(group.nodes) > 1
    why = ", ".join(first.reasons) or "cannot be decided"
    yield Line(2, Text.assemble((_names(group.names), "bold cyan"), f": {why}"))
    for text in first.details:
        yield Line(4, Text(shared_text(text, first.node) if several else text))
    for number, request in enumerate(first.requests):
        yield Line(4, _request(request, everything))
        refusals = refusals_in(group, number)
        shown = len(refusals) if everything else MAX_REASONS
        for reason, devices in refusals[:shown]:
            what = Text.assemble((_device_names(devices, len(group.nodes)), "cyan"), f": {reason}")
            yield Line(6, what)
        if len(refusals) > shown:
            more = counted(len(refusals) - shown, "more reason")
            yield Line(6, Text(f"… and {more}; --all shows them"))
    for text in first.besides:
        yield Line(4, Text(f"besides: {shared_text(text, first.node) if several else text}"))


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]}"
    return f"{len(names)} nodes ({_listed(names)})"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _request(request: RequestExplanation, everything: bool) -> Text:
    text = Text(f"claim {request.claim}, request ")
    text.append(request.request, "bold")
    devices = counted(request.wanted, "device")
    text.append(f": {request.found} of {devices} found" if request.wanted else ": all devices")
    if request.problem:
        text.append(f"; {request.problem}")
    elif not request.refusals and request.found < request.wanted:
        text.append(f"; there are {'no more' if request.found else 'none'}")
        text.append(" here" if everything else " of its class here")
    return text


def _device_names(devices: Sequence[tuple[str, ...]], number_of_nodes: int) -> str:
    """The devices of one node by name; those of several nodes by name if equal, else their number."""
    names = {tuple(device.rpartition("/")[2] for device in own) for own in devices}
    if len(names) == 1 and (number_of_nodes == 1 or len(devices) == number_of_nodes):
        return _listed(names.pop())
    least, most = min(map(len, devices)), max(map(len, devices))
    if len(devices) < number_of_nodes:
        least = 0
    number = str(most) if least == most else f"{least} to {most}"
    return f"{number} device{'s' * (most != 1)} each"


# --- wrapping ---


def plain_text(lines: Iterable[Line]) -> str:
    """The lines without colours, none of them wrapped."""
    return "\n".join(f"{' ' * line.indent}{line.text.plain}".rstrip() for line in lines)


def wrapped(line: Line, console: Console, width: int | None) -> Iterator[Text]:
    """The line, continued with a hanging indent where it is wider than `width`."""
    indent, text = line
    if width is None or indent + len(text) <= width:
        yield Text.assemble(" " * indent, text)
        return
    pieces = text.wrap(console, max(width - indent - HANG, MIN_WIDTH))
    for number, piece in enumerate(pieces):
        piece.rstrip()
        yield Text.assemble(" " * (indent + (HANG if number else 0)), piece)
