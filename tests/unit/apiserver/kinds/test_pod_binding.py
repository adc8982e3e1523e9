"""The subresource `binding` of pods: what it changes, and which pods it refuses."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from allot.api.core import Pod
from allot.apiserver.http.scale_writes import document_of
from allot.apiserver.kinds.definition import BINDING as BINDING_PART
from allot.apiserver.kinds.pod_binding import (
    BindingRefused,
    bind,
    plain_binding,
    validate_binding,
)
from allot.testing.builders import a_pod
from allot.validation.formats import SUBDOMAIN_RULE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00Z"
EARLIER = "2025-01-01T00:00:00Z"

BINDING_KIND = BINDING_PART.kind
BINDING = {
    "metadata": {"name": "p", "annotations": {"a": "new"}, "labels": {"l": "new", "m": "new"}},
    "target": {"kind": "Node", "name": "n"},
}


def test_bind() -> None:
    waiting = {
        "nominatedNodeName": "n",
        "conditions": [
            {"type": "Other", "status": "True"},
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "lastTransitionTime": EARLIER,
            },
        ],
    }
    metadata = {
        "annotations": {"a": "old", "b": "old"},
        "labels": {"l": "old"},
        "generation": 3,
    }
    pod = a_pod("p", status=waiting, metadata=metadata)

    bound = bind(pod, BINDING, NOW)

    assert isinstance(bound, Pod)
    assert bound.node_name == "n"
    assert bound.metadata.annotations == {"a": "new", "b": "old"}
    assert bound.metadata.labels == {"l": "old", "m": "new"}
    assert bound.metadata.generation == 3
    assert bound.get("status") == {
        "conditions": [
            {"type": "Other", "status": "True"},
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": TIME,
            },
        ]
    }


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (a_pod("p", uid="u", node="m"), 'pod p is already assigned to node "m"'),
        (
            a_pod("p", uid="u", deleting=True),
            "pod p is being deleted, cannot be assigned to a host",
        ),
        (
            a_pod("p", uid="u", schedulingGates=[{"name": "g"}]),
            "pod p has non-empty .spec.schedulingGates",
        ),
    ],
)
def test_bind_is_refused(pod: Pod, message: str) -> None:
    binding = BINDING | {"metadata": {"uid": "u"}}

    assert bind(pod, binding, NOW) == BindingRefused(message)


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_preconditions_are_checked_first(field: str) -> None:
    pod = a_pod("p", uid="v", node="m")

    refused = bind(pod, BINDING | {"metadata": {field: "7"}}, NOW, dry_run=True)

    assert isinstance(refused, BindingRefused)
    assert refused.kind == "pods"
    assert "Key: /pods/default/p," in refused.message
    assert "in precondition: 7" in refused.message


@pytest.mark.parametrize(
    ("target", "problems"),
    [
        ({"name": "n"}, []),
        ({}, ["target.name: Required value"]),
        ({"name": "a/b"}, [f'target.name: Invalid value: "a/b": {SUBDOMAIN_RULE}']),
        (
            {"kind": "Pod", "name": "n"},
            ['target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
        ),
    ],
)
def test_binding_is_validated(target: dict[str, Any], problems: list[str]) -> None:
    assert [str(error) for error in validate_binding({"target": target})] == problems


METADATA = [
    '{"name":"p","namespace":"n","uid":"u"}',
    '{"name":"p"}',
    '{"namespace":"n","name":"p"}',
    '{"name":"p","name":"q"}',
    '{"name":"p","namespace":""}',
    '{"name":"p","uid":null}',
    '{"name":"p","labels":{"a":"b"}}',
    '{"name":"p","unknown":1}',
    '{"name":"\\u0070"}',
    '{"name":"\xe4"}',
    '{"name": "p"}',
    '{"name":1}',
    "{}",
    "null",
]
TARGETS = ['{"kind":"Node","name":"n"}', '{"name":"n"}', '{"kind":1}', '{"uid":"u"}', "{}", "null"]
FORMS = [
    '{"kind":"Binding","apiVersion":"v1","metadata":METADATA,"target":TARGET}',
    '{"apiVersion":"v1","kind":"Binding","metadata":METADATA,"target":TARGET}',
    '{"kind":"Binding","apiVersion":"v2","metadata":METADATA,"target":TARGET}',
    '{"kind":"Binding","apiVersion":"v1","kind":"Pod","metadata":METADATA,"target":TARGET}',
    '{"kind":"Binding","apiVersion":"v1","metadata":METADATA,"target":TARGET,"target":TARGET}',
    '{"kind":"Binding","apiVersion":"v1","metadata":METADATA,"target":TARGET,"more":1}',
    '{"kind":"Binding","apiVersion":"v1","metadata":METADATA}',
    '{"kind":"Binding","apiVersion":"v1","metadata":METADATA,"target":TARGET}\n',
    '{"kind":"Binding","apiVersion":"v1","metadata":METADATA,"target":TARGET',
]


def test_a_plain_binding_is_read_as_any_other() -> None:
    assert BINDING_KIND is not None
    plain = 0
    for form, metadata, target in product(FORMS, METADATA, TARGETS):
        body = form.replace("METADATA", metadata).replace("TARGET", target).encode()
        found = plain_binding(body)
        if found is not None:
            plain += 1
            issues: list[str] = []
            assert found == document_of(BINDING_KIND, body, "", issues)
            assert not issues
    assert plain > 3


def test_a_long_binding_is_not_plain() -> None:
    body = FORMS[0].replace("METADATA", METADATA[0]).replace("TARGET", TARGETS[0])

    assert plain_binding(body.encode()) is not None
    assert plain_binding(body.replace('"n"', f'"{"n" * 1000}"').encode()) is None
