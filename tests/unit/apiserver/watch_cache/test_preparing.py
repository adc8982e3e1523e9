"""A server prepares, when it starts, what its first pod would wait for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from allot.api import strictness
from allot.api.identities import GroupVersion
from allot.apiserver.kinds.resources import find
from allot.apiserver.schemas import strictness as raw_strictness
from allot.apiserver.watch_cache.codecs import codec_for, prepare_for_pods

POD = b"""{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    "containers": [{"name": "m", "image": "i", "resources": {"claims": [{"name": "c"}]}}]}}"""
CLAIM = b"""{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {
    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k"}}]}}}"""


@pytest.mark.parametrize(
    ("group", "plural", "body"), [("", "pods", POD), ("resource.k8s.io", "resourceclaims", CLAIM)]
)
def test_first_object_makes_no_types(group: str, plural: str, body: bytes) -> None:
    resource = find(GroupVersion(group, "v1"), plural)
    assert resource is not None
    prepare_for_pods()
    before = _types_made()
    _, issues = codec_for(resource).decode_strictly(body, "v1", datetime.now(UTC))
    assert issues == []
    assert _types_made() == before


def _types_made() -> int:
    made = (raw_strictness._struct, strictness._strict_decoder, strictness._strict_twin)
    return sum(each.cache_info().misses for each in made)
