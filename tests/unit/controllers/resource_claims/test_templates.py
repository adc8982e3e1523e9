"""The claims that pods get from templates."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.core import Pod
from allot.api.meta import ObjectMeta
from allot.api.resource import POD_CLAIM_NAME
from allot.controllers.resource_claims.templates import (
    ClaimTemplate,
    claim_already_made,
    claim_from,
    claim_key,
    claim_statuses_to_write,
    name_base,
    name_suffix,
    refusal,
)
from allot.features import ADMIN_ACCESS, DEFAULTS, PRIORITIZED_LIST, FeatureGates
from tests.unit.controllers.resource_claims.claims import NOW, a_consuming_pod, a_used_claim

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
labels = st.text("ab0-", min_size=1, max_size=63).map(lambda text: f"a{text[1:-1]}z"[:63])
subdomains = st.lists(labels, min_size=1, max_size=3).map(".".join)


@pytest.mark.parametrize(
    ("pod", "entry", "base"),
    [
        pytest.param("p", "gpu", "p-gpu-", id="short"),
        pytest.param("p" * 53, "gpu", f"{'p' * 53}-gpu-", id="just-fits"),
        pytest.param("p" * 54, "gpu", f"{'p' * 53}-gp-", id="one-too-many"),
        pytest.param("p" * 63, "e" * 63, f"{'p' * 28}-{'e' * 28}-", id="both-long"),
        pytest.param(
            f"{'p' * 27}-{'p' * 35}",
            f"{'e' * 26}--{'e' * 35}",
            f"{'p' * 27}-{'e' * 26}-",
            id="no-hyphens-at-the-end",
        ),
    ],
)
def test_name_base(pod: str, entry: str, base: str) -> None:
    assert name_base(pod, entry) == base


@given(subdomains, labels, st.uuids().map(str), st.integers(0, 9))
def test_generated_claim_names_are_valid_and_deterministic(
    pod: str, entry: str, uid: str, attempt: int
) -> None:
    key = claim_key(a_consuming_pod(pod, uid), entry, attempt)

    assert key == claim_key(a_consuming_pod(pod, uid), entry, attempt)
    assert len(key.name) <= 63
    assert SUBDOMAIN.fullmatch(key.name)
    assert key.name.startswith(name_base(pod, entry))


def test_names_differ_by_pod_entry_and_attempt() -> None:
    names = {
        name_suffix(uid, entry, attempt)
        for uid in ("u1", "u2")
        for entry in ("a", "b")
        for attempt in (0, 1)
    }
    assert len(names) == 8


def a_template(*requests: dict[str, Any], **metadata: Any) -> ClaimTemplate:
    spec = {"devices": {"requests": list(requests)}, "newField": {"kept": True}}
    return ClaimTemplate({"metadata": {"name": "t"}, "spec": {"metadata": metadata, "spec": spec}})


def test_a_claim_is_its_template_for_one_pod() -> None:
    template = a_template({"name": "r"}, labels={"l": "1"}, annotations={"n": "2"})

    claim = claim_from(template, a_consuming_pod("p", "u"), "gpu", "p-gpu-x").data

    assert claim["spec"] == template.data["spec"]["spec"]
    assert claim["metadata"] == {
        "namespace": "ns",
        "name": "p-gpu-x",
        "generateName": "p-gpu-",
        "labels": {"l": "1"},
        "annotations": {"n": "2", POD_CLAIM_NAME: "gpu"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
        ],
    }


def test_metadata_is_in_the_order_in_which_servers_write_it() -> None:
    template = a_template({"name": "r"}, labels={"l": "1"}, annotations={"n": "2"})

    metadata = claim_from(template, a_consuming_pod("p", "u"), "gpu", "p-gpu-x").data["metadata"]

    sent = msgspec.json.encode(metadata)
    assert msgspec.json.encode(msgspec.json.decode(sent, type=ObjectMeta)) == sent


ADMIN = {"exactly": {"adminAccess": True}}
LIST = {"firstAvailable": [{"name": "s"}]}


@pytest.mark.parametrize(
    ("request_", "gates", "said"),
    [
        pytest.param(ADMIN, DEFAULTS, None, id="admin-on"),
        pytest.param(ADMIN, DEFAULTS.switched({ADMIN_ACCESS: False}), "admin access", id="admin"),
        pytest.param(LIST, DEFAULTS, None, id="list-on"),
        pytest.param(
            LIST, DEFAULTS.switched({PRIORITIZED_LIST: False}), "prioritized list", id="list"
        ),
        pytest.param({"exactly": {"adminAccess": False}}, FeatureGates(()), None, id="neither"),
    ],
)
def test_refusal(request_: dict[str, Any], gates: FeatureGates, said: str | None) -> None:
    reason = refusal(a_template({"name": "q", "exactly": {}}, request_), gates)

    assert (reason is None) == (said is None)
    assert said is None or said in (reason or "")


def test_the_oldest_claim_of_an_entry_is_taken() -> None:
    def made(name: str, age: int, entry: str = "gpu", **more: Any) -> Any:
        metadata = {"annotations": {POD_CLAIM_NAME: entry}, "name": name}
        created = NOW - timedelta(seconds=age)
        return a_used_claim(creation_timestamp=created, **{"owner": "u", **metadata, **more})

    claims = [
        made("young", 1),
        made("old", 9),
        made("foreign", 10, owner="other"),
        made("going", 10, deleting=True),
        made("of-another-entry", 10, entry="nic"),
    ]

    taken = claim_already_made(claims, "u", "gpu")

    assert taken is not None
    assert taken.metadata.name == "old"
    assert claim_already_made(claims[2:], "u", "gpu") is None


def told(*statuses: tuple[str, str]) -> Pod:
    shown = [{"name": name, "resourceClaimName": claim} for name, claim in statuses]
    return a_consuming_pod(status={"resourceClaimStatuses": shown})


@pytest.mark.parametrize(
    ("pod", "claims", "wanted"),
    [
        pytest.param(told(), {}, None, id="nothing"),
        pytest.param(told(("a", "x")), {"a": "x"}, None, id="known"),
        pytest.param(told(("b", "y")), {"a": "x"}, [("a", "x"), ("b", "y")], id="sorted"),
        pytest.param(told(("a", "x")), {"a": "z"}, [("a", "z")], id="replaced"),
    ],
)
def test_claim_statuses_to_write(
    pod: Pod, claims: dict[str, str], wanted: list[tuple[str, str]] | None
) -> None:
    statuses = claim_statuses_to_write(pod, claims)

    if wanted is None:
        assert statuses is None
    else:
        assert [(one["name"], one["resourceClaimName"]) for one in statuses or ()] == wanted


def test_an_entry_that_needs_no_claim_stays_so() -> None:
    pod = a_consuming_pod(status={"resourceClaimStatuses": [{"name": "m"}]})

    assert claim_statuses_to_write(pod, {"a": "x"}) == [
        {"name": "a", "resourceClaimName": "x"},
        {"name": "m"},
    ]


def test_all_claims_of_a_pod_are_found() -> None:
    pod = a_consuming_pod(
        entries=[
            {"name": "n", "resourceClaimName": "named"},
            {"name": "t", "resourceClaimTemplateName": "t"},
            {"name": "again", "resourceClaimName": "named"},
            {"name": "not-yet", "resourceClaimTemplateName": "t"},
        ],
        status={
            "resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
        },
    )

    assert pod.used_claims == ["named", "made", "extended"]
    assert pod.used_claim_keys == [f"{pod.key.namespace}/{name}" for name in pod.used_claims]
