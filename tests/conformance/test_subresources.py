"""Subresources of pods, nodes, workloads and DRA kinds, new pods and templates, as kube-apiserver v1.38 answered.

The modules of the parameters below have the requests and say how they were recorded.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from allot.features import DEFAULTS
from allot.rules import RuleSet
from allot.testing.servers import LocalServer
from tests.conformance import (
    csi_node_steps,
    empty_value_steps,
    endpoint_slice_steps,
    event_steps,
    job_steps,
    patch_steps,
    pod_field_steps,
    pod_steps,
    put_create_steps,
    subresource_steps,
    template_steps,
)
from tests.conformance.test_wire import ask
from tests.conformance.wire_steps import Names, Seen, Step

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("steps", "recorded"),
    [
        pytest.param(subresource_steps.all_steps, "subresources", id="subresources"),
        pytest.param(pod_steps.all_steps, "pods", id="pods"),
        pytest.param(pod_field_steps.all_steps, "pod-fields", id="pod-fields"),
        pytest.param(template_steps.all_steps, "templates", id="templates"),
        pytest.param(empty_value_steps.all_steps, "empty-values", id="empty-values"),
        pytest.param(patch_steps.all_steps, "patches", id="patches"),
        pytest.param(put_create_steps.all_steps, "put-creates", id="put-creates"),
        pytest.param(event_steps.all_steps, "events", id="events"),
        pytest.param(job_steps.all_steps, "jobs", id="jobs"),
        pytest.param(csi_node_steps.all_steps, "csi-nodes", id="csi-nodes"),
        pytest.param(endpoint_slice_steps.all_steps, "endpoint-slices", id="endpoint-slices"),
    ],
)
def test_answers_are_those_of_the_real_server(
    steps: Callable[[], list[Step]], recorded: str
) -> None:
    content = gzip.decompress((DATA / f"{recorded}-recorded.json.gz").read_bytes())
    expected = [Seen(*each) for each in json.loads(content)]

    assert asyncio.run(differences(steps(), expected)) == []


async def differences(steps: list[Step], recorded: list[Seen]) -> list[tuple[Step, Seen, Seen]]:
    different = []
    names = Names()
    gates = DEFAULTS.with_rules(RuleSet.V1_38)
    async with LocalServer(gates=gates, taints_new_nodes=True) as server:
        for step, expected in zip(steps, recorded, strict=True):
            found = await ask(server, step, names)
            if found != expected:
                different.append((step, expected, found))
    return different
