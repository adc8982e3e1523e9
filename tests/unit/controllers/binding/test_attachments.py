"""What an allocation asks of a controller."""

from __future__ import annotations

import pytest

from allot.api.base import replace
from allot.api.claims import AllocationResult
from allot.api.identities import DeviceId, ObjectKey, SharedDeviceId
from allot.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from allot.controllers.binding.attachments import Attachment, attach_requests, single_node
from tests.unit.controllers.binding.claims import (
    DRIVER,
    FAILED,
    READY,
    START,
    a_config,
    a_result,
    allocated,
    attachment,
    free,
    one_node,
)

SHARE = "0a0b0c0d-0000-4000-8000-000000000000"


def test_a_request_says_all_there_is_to_know() -> None:
    claim = allocated("gpu-0")

    ((found, request),) = attach_requests(claim, DRIVER).items()

    assert found == Attachment(SharedDeviceId(DRIVER, "rack", "gpu-0"), "n0", "u0", START)
    assert found.whole_device == DeviceId(DRIVER, "rack", "gpu-0")
    assert (request.pool, request.device, request.share_id, request.node, request.request) == (
        "rack",
        "gpu-0",
        "",
        "n0",
        "gpu",
    )
    assert request.claim_key == ObjectKey("default", "claim")
    assert request.binding_conditions == (READY,)
    assert request.failure_conditions == (FAILED,)
    assert str(request) == f"{DRIVER}/rack/gpu-0 on n0 for default/claim"


@pytest.mark.parametrize(
    ("claim", "devices"),
    [
        pytest.param(None, [], id="deleted"),
        pytest.param(free(), [], id="not-allocated"),
        pytest.param(allocated("a", "b"), ["a", "b"], id="two-devices"),
        pytest.param(allocated(a_result("a", driver="other.example.com")), [], id="other-driver"),
        pytest.param(
            allocated(a_result("a", binding_conditions=(), binding_failure_conditions=()), "b"),
            ["b"],
            id="without-conditions",
        ),
        pytest.param(
            allocated("a", a_result("a", request="too", admin_access=True)),
            ["a"],
            id="same-device-twice",
        ),
        pytest.param(
            allocated(a_result("a", share_id=SHARE), a_result("a", share_id=SHARE[::-1])),
            ["a", "a"],
            id="two-shares",
        ),
    ],
)
def test_which_devices(claim: object, devices: list[str]) -> None:
    requests = attach_requests(claim, DRIVER)  # type: ignore[arg-type]

    assert devices == [request.device for request in requests.values()]


def test_conditions_of_others() -> None:
    claim = allocated(a_result("a", binding_conditions=("mine", "theirs")), "b")

    (request,) = attach_requests(claim, DRIVER, {"mine"}).values()

    assert request.device == "a"
    assert request.binding_conditions == ("mine",)


def test_parameters_are_those_for_the_driver_and_the_request() -> None:
    config = (
        a_config("FromClass", {"speed": 1}),
        a_config("FromClass", {"speed": 2}, driver="other.example.com"),
        a_config("FromClaim", {"speed": 3}, "gpu"),
        a_config("FromClaim", {"speed": 4}, "gpu/big"),
        a_config("FromClaim", {"speed": 5}, "nic"),
        a_config("FromClaim", None),
    )
    claim = allocated(a_result("a", request="gpu/big"), config=config)

    (request,) = attach_requests(claim, DRIVER).values()

    assert request.parameters == ({"speed": 1}, {"speed": 3}, {"speed": 4})


NAME = NodeSelectorRequirement("metadata.name", "In", ("n0",))


@pytest.mark.parametrize(
    ("selector", "node"),
    [
        pytest.param(None, "", id="everywhere"),
        pytest.param(one_node("n0"), "n0", id="one-node"),
        pytest.param(NodeSelector((NodeSelectorTerm((NAME,)),)), "", id="a-label"),
        pytest.param(NodeSelector((NodeSelectorTerm((NAME,), (NAME,)),)), "", id="both"),
        pytest.param(
            NodeSelector((NodeSelectorTerm(match_fields=(replace(NAME, operator="NotIn"),)),)),
            "",
            id="not-in",
        ),
        pytest.param(
            NodeSelector((NodeSelectorTerm(match_fields=(NAME,)),) * 2), "", id="two-terms"
        ),
    ],
)
def test_the_node(selector: NodeSelector | None, node: str) -> None:
    assert single_node(AllocationResult(node_selector=selector)) == node


@pytest.mark.parametrize(
    ("found", "covered"),
    [
        pytest.param(attachment(), True, id="the-same"),
        pytest.param(attachment()._replace(claim_uid="", allocated_at=None), True, id="no-claim"),
        pytest.param(Attachment(attachment().device), True, id="the-device-only"),
        pytest.param(attachment(node="n1"), False, id="other-node"),
        pytest.param(attachment(uid="u1"), False, id="other-claim"),
        pytest.param(attachment(at=1), False, id="other-allocation"),
        pytest.param(Attachment(attachment("gpu-1").device), False, id="other-device"),
    ],
)
def test_what_a_driver_finds_is_compared_as_far_as_it_is_known(
    found: Attachment, covered: bool
) -> None:
    assert found.is_covered_by(attachment()) is covered
