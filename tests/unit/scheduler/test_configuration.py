from __future__ import annotations

from typing import Any

import pytest
import yaml

from allot.features import SCHEDULER_FILTER_TIMEOUT, with_overrides
from allot.scheduler.configuration import (
    DEFAULT_WEIGHTS,
    ConfigurationError,
    ProfileConfiguration,
    SchedulerConfiguration,
    duration_seconds,
    read_configuration,
)
from allot.scheduler.plugins.dynamic_resources.factory import read_dynamic_resources_args

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> SchedulerConfiguration:
    return read_configuration(yaml.safe_load(HEAD + text))


def profile(text: str) -> ProfileConfiguration:
    """The only profile in a file."""
    (found,) = read("profiles:\n- " + text.strip().replace("\n", "\n  ")).profiles
    return found


def test_an_empty_configuration_means_the_defaults() -> None:
    assert read("") == SchedulerConfiguration()
    (default,) = read("").profiles
    assert default.scheduler_name == "default-scheduler"
    assert default.plugins == tuple(DEFAULT_WEIGHTS)


def test_default_plugins_weights_and_order() -> None:
    """DynamicResources stands right before DefaultPreemption, so that it is asked first."""
    names = list(DEFAULT_WEIGHTS)

    assert names.index("DefaultPreemption") == names.index("DynamicResources") + 1
    assert {name: weight for name, weight in DEFAULT_WEIGHTS.items() if weight} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_a_file_as_distributions_ship_it() -> None:
    found = read("""
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
  qps: 100
  burst: 200
leaderElection:
  leaderElect: true
  leaseDuration: 1m0s
  renewDeadline: 40s
  retryPeriod: 5s
  resourceLock: leases
  resourceName: my-scheduler
  resourceNamespace: my-system
parallelism: 16
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 30
percentageOfNodesToScore: 30
enableProfiling: true
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  percentageOfNodesToScore: 100
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy:
        type: MostAllocated
        resources:
        - {name: cpu, weight: 1}
""")

    assert found.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert (found.qps, found.burst) == (100.0, 200)
    election = found.leader_election
    assert (election.enabled, election.namespace, election.name) == (
        True,
        "my-system",
        "my-scheduler",
    )
    assert (election.lease_seconds, election.renew_seconds, election.retry_seconds) == (60, 40, 5)
    assert (found.initial_backoff_seconds, found.max_backoff_seconds) == (2, 30)
    first, second = found.profiles
    assert (first.scheduler_name, first.percentage_of_nodes_to_score) == ("default-scheduler", 30)
    assert (second.scheduler_name, second.percentage_of_nodes_to_score) == ("packing", 100)
    assert second.args["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"


def test_the_arguments_of_dynamic_resources() -> None:
    found = profile("""
pluginConfig:
- name: DynamicResources
  args: {kind: DynamicResourcesArgs, filterTimeout: 10ms, bindingTimeout: 1m30s}
""")

    args = read_dynamic_resources_args(found.args["DynamicResources"])

    assert args.filter_timeout_seconds == pytest.approx(0.01)
    assert args.binding_timeout_seconds == 90


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param({}, (10.0, 600.0, True), id="defaults"),
        pytest.param({"filterTimeout": "0s"}, (0.0, 600.0, True), id="zero-switches-it-off"),
        pytest.param({"bindingTimeout": "1s"}, (10.0, 1.0, True), id="a-second-is-enough"),
        pytest.param({"preferReadyDevices": False}, (10.0, 600.0, False), id="no-preference"),
        pytest.param(
            {"preferReadyDevices": "yes"},
            "DynamicResourcesArgs.preferReadyDevices: must be true or false",
            id="not-a-bool",
        ),
        pytest.param(
            {"filterTimeout": "-1s"},
            "DynamicResourcesArgs.filterTimeout: must be zero or positive",
            id="negative",
        ),
        pytest.param(
            {"bindingTimeout": "999ms"},
            "DynamicResourcesArgs.bindingTimeout: must be at least 1 second",
            id="too-short",
        ),
        pytest.param(
            {"filterTimeout": "soon"},
            "DynamicResourcesArgs.filterTimeout: 'soon' is not a duration such as 10s or 1m30s",
            id="no-duration",
        ),
    ],
)
def test_dynamic_resources_args(
    args: dict[str, Any], expected: tuple[float, float, bool] | str
) -> None:
    if isinstance(expected, str):
        with pytest.raises(ConfigurationError) as raised:
            read_dynamic_resources_args(args)
        assert str(raised.value) == expected
    else:
        assert tuple(read_dynamic_resources_args(args)) == expected


# --- plugins ---


def test_a_plugin_can_be_switched_off_everywhere() -> None:
    found = profile("plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}")

    assert set(DEFAULT_WEIGHTS) - set(found.plugins) == {"ImageLocality"}


def test_a_plugin_can_be_switched_off_at_one_point() -> None:
    found = profile("plugins: {score: {disabled: [{name: ImageLocality}, {name: NodeAffinity}]}}")

    assert found.plugins == tuple(DEFAULT_WEIGHTS)
    assert found.disabled == {"score": {"ImageLocality", "NodeAffinity"}}


def test_all_can_be_switched_off_at_one_point_but_some() -> None:
    found = profile("""
plugins:
  score:
    disabled: [{name: "*"}]
    enabled: [{name: NodeResourcesFit, weight: 5}]
""")

    assert found.disabled["score"] == set(DEFAULT_WEIGHTS) - {"NodeResourcesFit"}
    assert found.weights["NodeResourcesFit"] == 5


def test_all_can_be_switched_off_but_those_that_are_named_in_their_order() -> None:
    found = profile("""
plugins:
  multiPoint:
    disabled: [{name: "*"}]
    enabled: [{name: PrioritySort}, {name: NodeName}, {name: DynamicResources, weight: 7}, {name: DefaultBinder}]
""")

    assert found.plugins == ("PrioritySort", "NodeName", "DynamicResources", "DefaultBinder")
    assert found.weights["DynamicResources"] == 7


def test_a_plugin_can_be_switched_on_at_one_point_alone() -> None:
    found = profile("""
plugins:
  multiPoint: {disabled: [{name: NodeAffinity}]}
  score: {enabled: [{name: NodeAffinity}]}
""")

    assert "NodeAffinity" in found.plugins
    assert "NodeAffinity" in found.disabled["filter"]
    assert "score" not in found.disabled


@pytest.mark.parametrize("point", ["multiPoint", "score"])
def test_weights_can_be_changed(point: str) -> None:
    found = profile(f"plugins: {{{point}: {{enabled: [{{name: TaintToleration, weight: 9}}]}}}}")

    assert found.plugins == tuple(DEFAULT_WEIGHTS)
    assert found.weights["TaintToleration"] == 9
    assert found.weights["NodeAffinity"] == 2


# --- what is wrong ---


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(None, "the configuration is not an object", id="empty"),
        pytest.param([], "the configuration is not an object", id="a-list"),
        pytest.param(
            {"kind": "Pod", "apiVersion": "v1"},
            "expected KubeSchedulerConfiguration in kubescheduler.config.k8s.io/v1, "
            "found 'Pod' in 'v1'",
            id="something-else",
        ),
        pytest.param(
            {
                "kind": "KubeSchedulerConfiguration",
                "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
            },
            "expected KubeSchedulerConfiguration in kubescheduler.config.k8s.io/v1, "
            "found 'KubeSchedulerConfiguration' in 'kubescheduler.config.k8s.io/v1beta3'",
            id="an-old-version",
        ),
    ],
)
def test_files_that_are_no_configuration(document: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(document)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles: duplicate schedulerName 'a'",
            id="a-name-twice",
        ),
        pytest.param(
            "profiles: [{}, {}]",
            "profiles: duplicate schedulerName 'default-scheduler'",
            id="the-default-name-twice",
        ),
        pytest.param(
            "profiles: [{plugins: {sort: {}}}]",
            "profiles[0].plugins.sort: unknown extension point; available: multiPoint, preEnqueue, queueSort, "
            "preFilter, filter, postFilter, preScore, score, reserve, permit, preBind, bind, postBind",
            id="no-such-point",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: [{weight: 1}]}}}]",
            "profiles[0].plugins.score.enabled[0]: missing required field name",
            id="a-plugin-without-a-name",
        ),
        pytest.param(
            "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultBinder}]}}}]",
            "profiles[0].plugins: no plugin for bind; enable one, such as DefaultBinder",
            id="no-bind-plugin",
        ),
        pytest.param(
            "profiles: [{plugins: {multiPoint: {disabled: [{name: PrioritySort}]}}}]",
            "profiles[0].plugins: no plugin for queueSort; enable one, such as PrioritySort",
            id="no-queue-sort-plugin",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{args: {}}]}]",
            "profiles[0].pluginConfig[0]: missing required field name",
            id="arguments-without-a-name",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: Coscheduling}]}]",
            "profiles[0].pluginConfig[0]: unknown plugin Coscheduling",
            id="arguments-for-an-unknown-plugin",
        ),
        pytest.param(
            "podInitialBackoffSeconds: -1",
            "podInitialBackoffSeconds: expected float >= 0.0, found -1",
            id="negative",
        ),
        pytest.param(
            "podMaxBackoffSeconds: long",
            "podMaxBackoffSeconds: expected float, found 'long'",
            id="no-number",
        ),
        pytest.param("rules: v1.37", "rules: 'v1.37' is not one of seeds, v1.38", id="rules"),
        pytest.param(
            "clientConnection: {burst: many}",
            "clientConnection.burst: expected int, found 'many'",
            id="no-integer",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15}",
            "leaderElection.leaseDuration: 15 is not a duration such as 10s or 1m30s",
            id="no-duration",
        ),
        pytest.param(
            "profiles: {a: b}", "profiles: expected array, found an object", id="profiles-no-list"
        ),
        pytest.param(
            "profiles: [a]", "profiles[0]: expected object, found 'a'", id="profile-no-object"
        ),
        pytest.param(
            "profiles: [{plugins: [a]}]",
            "profiles[0].plugins: expected object, found ['a']",
            id="plugins-no-object",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {enabled: {a: b}}}}]",
            "profiles[0].plugins.score.enabled: expected array, found an object",
            id="enabled-no-list",
        ),
        pytest.param(
            "leaderElection: yes",
            "leaderElection: expected object, found True",
            id="election-no-object",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: 1}]}]",
            "profiles[0].pluginConfig[0].args: expected object, found 1",
            id="args-no-object",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(text)

    assert str(raised.value) == message


def test_an_unknown_plugin_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ConfigurationError, match="unknown plugin Coscheduling; available: Sched"):
        read("profiles: [{plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}}]")


# --- durations ---


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10), ("0s", 0), ("0", 0), (0, 0), ("10ms", 0.01), ("1m30s", 90), ("1h", 3600),
        ("1.5h", 5400), (".5s", 0.5), ("100us", 0.0001), ("100µs", 0.0001), ("5ns", 5e-9),
        ("-1m", -60), ("+1m", 60), ("1m0s", 60),
    ],
)  # fmt: skip
def test_durations(text: Any, seconds: float) -> None:
    assert duration_seconds(text, "x") == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "10", 10, "s", "1d", "1 s", "10s!", None, [], "--1s", True, False]
)
def test_invalid_durations(text: Any) -> None:
    with pytest.raises(ConfigurationError, match="x: "):
        duration_seconds(text, "x")


@pytest.mark.parametrize(
    ("is_on", "expected"), [pytest.param(True, 3.0, id="on"), pytest.param(False, 0.0, id="off")]
)
def test_the_filter_timeout_has_a_gate(is_on: bool, expected: float) -> None:
    gates = with_overrides({SCHEDULER_FILTER_TIMEOUT: is_on})

    args = read_dynamic_resources_args({"filterTimeout": "3s"}, gates)

    assert args.filter_timeout_seconds == expected
