"""Decision tables: what is done about a claim, by what it says and what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.claims import ResourceClaim
from allot.controllers.binding import Attachment
from allot.controllers.binding.attachments import attach_requests
from allot.controllers.binding.conditions import DeviceReport, with_reports
from allot.controllers.binding.decisions import (
    Adopt,
    Attach,
    AttachmentState,
    Detach,
    Phase,
    WriteReport,
    decide,
    orphans,
)
from tests.unit.controllers.binding.claims import (
    DRIVER,
    READY,
    START,
    a_result,
    a_status,
    allocated,
    attachment,
    free,
)

DONE = DeviceReport(True, "Attached", "ready")
WORKING = DeviceReport(False, "Attaching", "so far")
A = attachment("a")
HELD = allocated("a")
SAID = with_reports(HELD, DRIVER, {A: DONE}, START)
FOUND, ATTACHING = AttachmentState(Phase.FOUND), AttachmentState(Phase.ATTACHING)
ATTACHED, FAILED = AttachmentState(Phase.ATTACHED, DONE), Phase.FAILED


def in_short(claim: ResourceClaim | None, known: Mapping[Attachment, AttachmentState]) -> list[str]:
    words = []
    for action in decide(claim, DRIVER, known):
        match action:
            case Attach(request):
                words.append(f"attach {request.device}")
            case Adopt(request, phase):
                words.append(f"adopt {request.device} {phase.value}")
            case WriteReport(which, report):
                words.append(f"say {which.device.device} {report.reason}")
            case Detach(which):
                words.append(f"detach {which.device.device} {which.node}")
    return words


@pytest.mark.parametrize(
    ("claim", "known", "actions"),
    [
        pytest.param(None, {}, [], id="nothing"),
        pytest.param(free(), {}, [], id="not-allocated"),
        pytest.param(HELD, {}, ["attach a"], id="new"),
        pytest.param(allocated("a", "b"), {A: ATTACHING}, ["attach b"], id="one-of-two-begun"),
        pytest.param(HELD, {A: ATTACHING}, [], id="begun"),
        pytest.param(
            HELD, {A: AttachmentState(Phase.ATTACHING, WORKING)}, ["say a Attaching"], id="progress"
        ),
        pytest.param(HELD, {A: ATTACHED}, ["say a Attached"], id="done"),
        pytest.param(SAID, {A: ATTACHED}, [], id="done-and-said"),
        pytest.param(SAID, {}, ["adopt a attached"], id="restarted-when-done"),
        pytest.param(
            allocated("a", statuses=(a_status("a", Ready="False"),)),
            {},
            ["attach a"],
            id="restarted-when-under-way",
        ),
        pytest.param(
            allocated("a", statuses=(a_status("a", Failed="True", Ready="True"),)),
            {},
            ["adopt a failed"],
            id="restarted-when-failed",
        ),
        pytest.param(SAID, {A: FOUND}, ["adopt a attached"], id="found-when-done"),
        pytest.param(HELD, {A: FOUND}, ["attach a"], id="found-when-not-done"),
        pytest.param(free(), {A: FOUND}, ["detach a n0"], id="found-and-gone-before-a-look"),
        pytest.param(None, {A: ATTACHING}, ["detach a n0"], id="deleted-while-attaching"),
        pytest.param(free(), {A: ATTACHED}, ["detach a n0"], id="deallocated"),
        pytest.param(
            free(), {A: AttachmentState(FAILED)}, ["detach a n0"], id="deallocated-after-failure"
        ),
        pytest.param(None, {A: AttachmentState(Phase.DETACHING)}, [], id="being-detached"),
        pytest.param(allocated("b"), {A: ATTACHED}, ["detach a n0", "attach b"], id="elsewhere"),
        pytest.param(
            allocated("a", node="n1"), {A: ATTACHED}, ["detach a n0"], id="same-device-other-node"
        ),
        pytest.param(
            allocated("a", node="n1"),
            {A: AttachmentState(Phase.DETACHING)},
            [],
            id="other-node-has-to-wait",
        ),
        pytest.param(allocated("a", at=9), {A: ATTACHED}, ["detach a n0"], id="allocated-anew"),
        pytest.param(allocated("a", uid="u1"), {A: ATTACHED}, ["detach a n0"], id="created-anew"),
        pytest.param(HELD, {A: AttachmentState(Phase.ENDED)}, ["detach a n0"], id="gone-and-back"),
    ],
)
def test_actions(
    claim: ResourceClaim | None, known: dict[Attachment, AttachmentState], actions: list[str]
) -> None:
    assert in_short(claim, known) == actions


def test_others_let_go_first() -> None:
    claim = allocated("a", "b")

    (attach,) = decide(claim, DRIVER, {}, leaving={A.device})

    assert isinstance(attach, Attach)
    assert attach.request.device == "b"


def test_with_conditions_of_two_controllers() -> None:
    claim = allocated(a_result("a", binding_conditions=(READY, "theirs")))
    ready = with_reports(claim, DRIVER, {A: DONE}, START, {READY})

    assert isinstance(decide(ready, DRIVER, {}, owned={READY})[0], Adopt)
    assert isinstance(decide(ready, DRIVER, {}, owned={"theirs"})[0], Attach)


def test_orphans() -> None:
    unclaimed, elsewhere = attachment("b"), A._replace(node="n1", claim_uid="")
    unclear = Attachment(A.device)

    assert orphans([A, unclaimed, elsewhere, unclear, unclaimed], [A]) == [unclaimed, elsewhere]


# --- laws ---


def versions() -> st.SearchStrategy[list[ResourceClaim | None]]:
    """What may become of a claim: each step a new allocation, none, or no claim."""
    devices = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
    held = st.builds(
        lambda names, node, uid: (names, node, uid),
        devices,
        st.sampled_from(["n0", "n1", ""]),
        st.sampled_from(["u0", "u1"]),
    )
    steps = st.lists(st.one_of(held, st.sampled_from(["free", None])), min_size=1, max_size=8)

    def build(drawn: Sequence[object]) -> list[ResourceClaim | None]:
        claims: list[ResourceClaim | None] = []
        for at, step in enumerate(drawn):
            if isinstance(step, tuple):
                names, node, uid = step
                claims.append(allocated(*names, node=node, uid=uid, at=at))
            else:
                claims.append(free() if step == "free" else None)
        return claims

    return steps.map(build)


@given(versions(), st.data())
def test_any_order_of_versions_ends_with_the_current_allocation_only(
    seen: list[ResourceClaim | None], data: st.DataObject
) -> None:
    """Work ends in any order, also after the claim has moved on; devices are never held twice."""
    known: dict[Attachment, AttachmentState] = {}
    under_way: list[Attachment] = []
    attached: set[Attachment] = set()

    def act(claim: ResourceClaim | None) -> ResourceClaim | None:
        for action in decide(claim, DRIVER, known):
            match action:
                case Attach(request):
                    assert request.attachment.device not in {one.device for one in attached}
                    known[request.attachment] = AttachmentState(Phase.ATTACHING)
                    attached.add(request.attachment)
                    under_way.append(request.attachment)
                case Adopt(request, phase):
                    known[request.attachment] = AttachmentState(phase)
                case Detach(which):
                    known[which] = AttachmentState(Phase.DETACHING)
                    if which not in under_way:
                        under_way.append(which)
                case WriteReport(which, report):
                    assert claim is not None
                    claim = with_reports(claim, DRIVER, {which: report}, START)
        return claim

    def finish(which: Attachment) -> None:
        under_way.remove(which)
        if known[which].phase is Phase.DETACHING:
            del known[which]
            attached.discard(which)
        else:
            known[which] = AttachmentState(Phase.ATTACHED, DONE)

    claim: ResourceClaim | None = None
    for version in seen:
        claim = act(version)
        for _ in range(data.draw(st.integers(0, len(under_way)))):
            finish(data.draw(st.sampled_from(under_way)))
            claim = act(claim)
    while under_way:
        finish(data.draw(st.sampled_from(under_way)))
        claim = act(claim)

    current = attach_requests(claim, DRIVER).keys()
    assert attached == set(current)
    assert decide(claim, DRIVER, known) == []
    said = claim.status.devices if claim is not None else ()
    assert {status.device for status in said} == {one.device.device for one in current}
    assert all(one.status == "True" for status in said for one in status.conditions)
