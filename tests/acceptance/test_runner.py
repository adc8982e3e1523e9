"""The runner itself: it must notice whatever a scenario asks for and a cluster does not do."""

from __future__ import annotations

import re

import msgspec
import pytest
import yaml

from tests.acceptance.runner.acceptance import AcceptanceRunner
from tests.acceptance.runner.cluster import Cluster
from tests.acceptance.runner.outcome import ScenarioFailedError
from tests.acceptance.runner.resources import path_of_reference
from tests.acceptance.runner.scenarios import Scenario


def scenario_of(text: str) -> Scenario:
    return msgspec.convert({"name": "made-up", "timeout": 0.5, **yaml.safe_load(text)}, Scenario)


CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}}"

GOOD_SCENARIOS = {
    "update": """
    - update: configmaps/a
      set: {data.k: x, metadata.labels.new: y}
      unset: [data.l]
      expect:
      - {path: data, eq: {k: x}}
      - {path: metadata.labels.new, eq: y}
    """,
    "put": """
    - put: configmaps/a
      body: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
      expect: [{path: data, exists: false}]
    """,
    "hold-and-wait": """
    - {hold: configmaps/a, for: 0.2, expect: [{path: data.k, eq: v}]}
    - {wait: configmaps/a, expect: [{path: data.k, eq: v}], save: {K: data.k}}
    - delete: [configmaps/a]
    - {wait: configmaps/a, gone: true}
    - assert: [{path: K, eq: v}, {path: NS, eq: "${P}-ns"}]
    """,
    "parallel-and-repeat": """
    - parallel:
      - {create: {apiVersion: v1, kind: Secret, metadata: {name: s1}}}
      - {create: {apiVersion: v1, kind: Secret, metadata: {name: s2}}}
    - repeat: 2
      steps: [{create: {apiVersion: v1, kind: ConfigMap, metadata: {name: "n-${i}"}}}]
    - {get: secrets, expect: [{path: "items[*].metadata.name", eq: [s1, s2]}]}
    - {get: configmaps, expect: [{path: "items[*].metadata.name", eq: [a, n-0, n-1]}]}
    """,
    "retries": """
    - parallel:
      - get: configmaps/a
        expect: [{path: data.k, eq: late}]
        retries: 10
      - repeat: 1
        steps: [{sleep: 0.7}, {patch: configmaps/a, body: {data: {k: late}}}]
    """,
    "watch": """
    - {get: configmaps, save: {RV: metadata.resourceVersion}}
    - watch: configmaps
      query: {resourceVersion: "${RV}"}
      settle: 0
      forbidTypes: [DELETED]
      steps:
      - {patch: configmaps/a, body: {data: {k: one}}}
      - {patch: configmaps/a, body: {data: {k: two}}}
      until: [{type: MODIFIED, expect: [{path: data.k, eq: two}], save: {K: data.k}}]
    - assert: [{path: K, eq: two}]
    """,
    "refused-watch": """
    - watch: configmaps
      query: {fieldSelector: no.such=field}
      expectError: {code: 400, reason: BadRequest}
    """,
    "impersonation": """
    - get: configmaps/a
      as: "${P}-unknown"
      expectError: {code: 403, message: 'User "${P}-unknown"'}
    """,
    "headers-and-texts": """
    - raw: {path: /version}
      code: 200
      expectHeaders: [{path: content-type, contains: json}]
      textContains: [gitVersion]
    """,
}


@pytest.mark.parametrize("steps", GOOD_SCENARIOS.values(), ids=GOOD_SCENARIOS.keys())
def test_good_scenario(steps: str, memory_runner: AcceptanceRunner) -> None:
    memory_runner.run(scenario_of(f"manifests: [{CONFIG_MAP}]\nsteps:{steps}"))


# steps, and what the failure says
BAD_SCENARIOS: dict[str, tuple[str, str]] = {
    "refused": ("[{get: configmaps/b}]", "HTTP 404"),
    "wrong-answer": (
        "[{get: configmaps/a, expect: [{path: data.k, eq: x}]}]",
        'step 0 .get.: data.k: expected eq "x", got "v"',
    ),
    "wrong-code": ("[{get: configmaps/a, code: 201}]", "expected HTTP 201, got 200"),
    "no-error": ("[{get: configmaps/a, expectError: {code: 404}}]", "expected an error"),
    "never": ("[{wait: configmaps/a, expect: [{path: data.k, eq: x}]}]", "after 0.5 s: data.k"),
    "not-gone": ("[{wait: configmaps/a, gone: true, timeout: 0.1}]", "after 0.1 s: it is still"),
    "does-not-hold": (
        "[{hold: configmaps/a, for: 1, expect: [{path: data.k, eq: x}]}]",
        "configmaps/a did not hold",
    ),
    "goes-while-held": (
        """
        - parallel:
          - {hold: configmaps/a, for: 2, expect: []}
          - {repeat: 1, steps: [{sleep: 0.3}, {delete: configmaps/a}]}
        """,
        "did not hold: HTTP 404",
    ),
    "missing-event": (
        "[{watch: configmaps, settle: 0, timeout: 1, until: [{type: DELETED}]}]",
        "saw ADDED .*; still awaited",
    ),
    "events-in-another-order": (
        """
        - watch: configmaps
          timeout: 1
          settle: 0
          steps: [{delete: configmaps/a}]
          until: [{type: DELETED}, {type: ADDED}]
        """,
        "still awaited: AwaitedEvent.type='ADDED'",
    ),
    "forbidden-event": (
        "[{watch: configmaps, settle: 0, timeout: 1, forbidTypes: [ADDED]}]",
        "what it must not: ADDED",
    ),
    "watch-without-error": (
        "[{watch: configmaps, timeout: 1, expectError: {code: 400}}]",
        "the watch had no error",
    ),
    "refused-watch": (
        "[{watch: configmaps, query: {fieldSelector: no.such=field}}]",
        "the watch was refused",
    ),
    "variable": ("[{assert: [{path: P, eq: x}]}]", "P: expected eq"),
    "one-of-parallel": ("[{parallel: [{get: configmaps/a}, {get: configmaps/b}]}]", "HTTP 404"),
    "retried": ("[{get: configmaps/b, retries: 1}]", "HTTP 404"),
    "header": (
        "[{raw: {path: /version}, expectHeaders: [{path: content-type, eq: x}]}]",
        "header content-type",
    ),
    "text": ("[{raw: {path: /healthz}, textContains: [bad]}]", "'ok' lacks 'bad'"),
}


@pytest.mark.parametrize(
    ("steps", "reason"), BAD_SCENARIOS.values(), ids=list(BAD_SCENARIOS.keys())
)
def test_bad_scenario(steps: str, reason: str, memory_runner: AcceptanceRunner) -> None:
    with pytest.raises(ScenarioFailedError, match=re.compile(reason, re.DOTALL)):
        memory_runner.run(scenario_of(f"manifests: [{CONFIG_MAP}]\nsteps: {steps}"))


def test_bad_manifest(memory_runner: AcceptanceRunner) -> None:
    with pytest.raises(ScenarioFailedError, match=r"manifest 1 \(ConfigMap\): HTTP 409"):
        memory_runner.run(scenario_of(f"manifests: [{CONFIG_MAP}, {CONFIG_MAP}]\nsteps: []"))


def test_played_node(memory_runner: AcceptanceRunner) -> None:
    """Bound pods run or are done, and are gone once deleted."""
    pods = "\n".join(
        f"- {{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: {{{annotation}}}}},"
        f" spec: {{nodeName: '${{P}}-n1', containers: [{{name: c, image: i}}]}}}}"
        for name, annotation in [("runs", ""), ("done", "accept.dev/complete: 'true'")]
    )
    memory_runner.run(
        scenario_of(
            f"""
nodes: [n1]
timeout: 20
manifests:
{pods}
steps:
- wait: pods/runs
  expect:
  - {{path: status.phase, eq: Running}}
  - {{path: "status.conditions[?type=Ready].status", eq: "True"}}
- wait: pods/done
  expect:
  - {{path: status.phase, eq: Succeeded}}
  - {{path: "status.containerStatuses[0].state.terminated.exitCode", eq: 0}}
- delete: pods/runs
- {{wait: pods/runs, gone: true}}
- get: nodes/${{P}}-n1
  expect:
  - {{path: "metadata.labels['accept.dev/scenario']", eq: "${{P}}"}}
  - {{path: spec.taints, exists: false}}
"""
        )
    )


def test_scenario_leaves_nothing_outside_namespaces(memory_runner: AcceptanceRunner) -> None:
    before = cluster_objects(memory_runner)

    memory_runner.run(
        scenario_of(
            """
nodes: [n1]
steps:
- create:
  - {apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: "${P}-c"}, spec: {}}
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {generateName: "${P}-"}
    spec:
      {driver: "${D}", nodeName: n, pool: {name: p, generation: 1, resourceSliceCount: 1}}
"""
        )
    )

    assert cluster_objects(memory_runner) == before


def cluster_objects(runner: AcceptanceRunner) -> set[str]:
    paths = [path_of_reference(each, "") for each in ("nodes", "deviceclasses", "resourceslices")]
    return {
        item["metadata"]["name"]
        for path in paths
        for item in runner.client.call("GET", path)["items"]
    }


def test_what_is_not_there_is_a_reason_to_skip(memory_runner: AcceptanceRunner) -> None:
    runner = AcceptanceRunner(Cluster(memory_runner.client, None, None, "", 1.0), ["DRAPartitions"])

    assert runner.reason_to_skip(scenario_of("features: [DRAPartitions]\nsteps: []"))
    assert runner.reason_to_skip(scenario_of("steps: [{repeat: 1, steps: [{kubectl: get pods}]}]"))
    assert not runner.reason_to_skip(scenario_of("features: [DRAOther]\nsteps: [{get: pods}]"))
