"""Which pods a claim is found by."""

from __future__ import annotations

import pytest

from allot.api.claims import ResourceClaim
from allot.controllers.resource_claims.indexes import pods_behind_claim
from tests.unit.controllers.resource_claims.claims import a_used_claim, consumer


@pytest.mark.parametrize(
    ("claim", "pods"),
    [
        pytest.param(a_used_claim(), [], id="unused"),
        pytest.param(a_used_claim(owner="a"), ["a"], id="made-for-a-pod"),
        pytest.param(a_used_claim(consumer("a"), owner="a"), ["a"], id="used-by-its-owner"),
        pytest.param(a_used_claim(consumer("b"), owner="a"), ["b", "a"], id="used-by-another"),
        pytest.param(a_used_claim(consumer("a"), consumer("b")), ["a", "b"], id="shared"),
        pytest.param(a_used_claim(consumer("a", resource="jobs")), [], id="used-by-no-pod"),
    ],
)
def test_pods_behind_claim(claim: ResourceClaim, pods: list[str]) -> None:
    assert pods_behind_claim(claim) == pods
