"""Explanations as text: wrapped in terminals, one line each elsewhere, coloured only where that is wanted."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from rich.text import Text

from allot.allocation.explain import Conflict, Proof
from allot.allocation.explain.findings import ConflictingRequest
from allot.cli.explain import print_lines
from allot.scheduler.explain.explanation_text import Line, claim_lines, pod_lines, wrapped
from allot.scheduler.explain.explanations import (
    ClaimExplanation,
    ClaimState,
    ClaimSummary,
    DeviceSummary,
    LackingCondition,
    NodeExplanation,
    PodExplanation,
    PodState,
    Proposed,
    RefusedDevices,
    RequestExplanation,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def shown(explanation: PodExplanation | ClaimExplanation) -> list[str]:
    lines = (
        pod_lines(explanation, NOW)
        if isinstance(explanation, PodExplanation)
        else claim_lines(explanation, NOW)
    )
    return [f"{' ' * line.indent}{line.text.plain}" for line in lines]


def a_node_explanation(name: str, *refusals: RefusedDevices, found: int = 0) -> NodeExplanation:
    request = RequestExplanation("default/c", "gpu", 2, found, True, refusals)
    conflict = Conflict(
        Proof.IRREDUCIBLE, (ConflictingRequest("default/c", "gpu"),), devices_short=2 - found
    )
    return NodeExplanation(
        name, "DynamicResources", ("no",), conflict=conflict, requests=(request,)
    )


def why(*nodes: NodeExplanation) -> list[str]:
    text = shown(PodExplanation("default/p", PodState.DOES_NOT_FIT, "No.", nodes=nodes))
    return text[text.index("Why, node by node") + 1 :]


def test_a_line_goes_on_further_in() -> None:
    console = Console(file=io.StringIO())
    line = Line(2, Text("one two three four five six seven eight"))

    assert [piece.plain for piece in wrapped(line, console, 26)] == [
        "  one two three four",
        "      five six seven eight",
    ]
    assert [piece.plain for piece in wrapped(line, console, None)] == [
        "  one two three four five six seven eight"
    ]


def test_a_narrow_terminal_is_not_an_endless_loop() -> None:
    pieces = list(wrapped(Line(6, Text("x" * 50)), Console(file=io.StringIO()), 10))

    assert "".join(piece.plain.strip() for piece in pieces) == "x" * 50


def test_other_programs_get_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    explanation = PodExplanation("default/p", PodState.DOES_NOT_FIT, "No [bold]node[/]. " * 20)

    print_lines(pod_lines(explanation, NOW))

    assert capsys.readouterr().out == ("No [bold]node[/]. " * 20).rstrip() + "\n"


def test_times() -> None:
    waiting = PodExplanation(
        "default/p",
        PodState.WAITING_FOR_DEVICES,
        "It waits.",
        since=NOW - timedelta(seconds=90),
        deadline=NOW + timedelta(minutes=8),
    )
    late = PodExplanation("p", PodState.WAITING_FOR_DEVICES, "It waits.", deadline=NOW)

    assert shown(waiting)[1] == (
        "Waiting since 2026-01-01T11:58:30Z (90s ago), until 2026-01-01T12:08:00Z at most (8m left)"
    )
    assert shown(late)[1] == "until 2026-01-01T12:00:00Z at most (over)"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2, seconds=5), "2m5s"),
        (timedelta(minutes=12, seconds=5), "12m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=3), "3d"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_ages_are_those_of_kubectl(span: timedelta, text: str) -> None:
    explanation = PodExplanation("p", PodState.SCHEDULED, "It is.", since=NOW - span)

    assert shown(explanation)[1].endswith(f"({text} ago)")


def test_devices_with_shares_and_conditions() -> None:
    device = DeviceSummary(
        request="nic",
        device="nic.example.com/n/eth1",
        share_id="s1",
        consumed_capacity={"bandwidth": "10G"},
        missing_conditions=("Attached", "Warm"),
        conditions=(
            LackingCondition("Attached"),
            LackingCondition("Warm", "False", "Heating", "40 of 60 degrees", NOW),
        ),
    )
    failed = DeviceSummary(request="gpu", device="g/n/0", admin_access=True, failure="Hot: 99")
    summary = ClaimSummary("default/c", ClaimState.ALLOCATED, devices=(device, failed))

    assert shown(ClaimExplanation("default/c", ClaimState.ALLOCATED, "It has.", summary)) == [
        "It has.",
        "",
        "Devices",
        "  nic: nic.example.com/n/eth1 (10G of bandwidth, share s1)",
        "    not ready: Attached was never reported",
        "    not ready: Warm is False (Heating: 40 of 60 degrees) for 0s",
        "  gpu: g/n/0 (admin access)",
        "    failed: Hot: 99",
    ]


def test_numbers_of_devices_where_nodes_differ() -> None:
    few = RefusedDevices("too old", ("d/a/x",))
    many = RefusedDevices("too old", ("d/b/y", "d/b/z"))

    assert why(a_node_explanation("a", few), a_node_explanation("b", many)) == [
        "  2 nodes (a, b): no",
        "    claim default/c, request gpu: 0 of 2 devices found",
        "      1 to 2 devices each: too old",
    ]


def test_the_node_that_comes_nearest_is_first() -> None:
    lines = why(a_node_explanation("a"), a_node_explanation("b", found=1))

    assert lines[0] == "  node b: no"
    assert lines[1].endswith("1 of 2 devices found; there are no more of its class here")
    assert lines[3].endswith("0 of 2 devices found; there are none of its class here")


def test_too_many_kinds_of_nodes_and_proposals_are_counted() -> None:
    nodes = tuple(NodeExplanation(f"n{number}", "X", (f"reason {number}",)) for number in range(12))
    changes = tuple(Proposed("n1", f"change {number}") for number in range(8))
    text = shown(PodExplanation("p", PodState.DOES_NOT_FIT, "No.", nodes=nodes, proposals=changes))

    assert text[-1] == "  … and 7 more nodes; --all shows them"
    assert "    - … and 2 more; --all shows them" in text
    assert text.index("What would help, each alone") < text.index("Why, node by node")


def test_names_of_nodes_in_texts_do_not_keep_nodes_apart() -> None:
    nodes = [
        NodeExplanation(name, "X", ("no",), details=(f"pool d/{name} is a bad one",))
        for name in ("n", "n-2")
    ]

    assert why(*nodes) == [
        "  2 nodes (n, n-2): no",
        "    pool d/n is a bad one (on n)",
    ]
