from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.scheduler.framework.cycle_state import CycleState
from allot.scheduler.framework.events import Hint
from allot.scheduler.framework.plugins import PRE_FILTER_SKIP
from allot.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from allot.scheduler.state.affinity import PodTerm
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.pods import PodInfo
from tests.unit.scheduler.state.objects import (
    HOST,
    PREFERRED,
    REQUIRED,
    ZONE,
    a_cluster,
    a_node_facts,
    a_pod_info,
    reasons,
)

NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

NODES = {"a1": "a", "a2": "a", "b1": "b"}


def a_term(app: str, key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def preferring(kind: str, weight: int, term: dict[str, Any]) -> dict[str, Any]:
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}


def an_app(app: str, name: str = "pod", **fields: Any) -> PodInfo:
    return a_pod_info(name, labels={"app": app}, **fields)


def zones(*pods: PodInfo) -> ClusterState:
    """Nodes a1 and a2 in zone a, b1 in zone b, and one in no zone."""
    nodes = [a_node_facts(name, labels={ZONE: zone}) for name, zone in NODES.items()]
    return a_cluster([*nodes, a_node_facts("nowhere")], pods)


@pytest.mark.parametrize(
    ("affinity", "there", "refused"),
    [
        pytest.param(near(a_term("db")), ["db@a1"], {"b1": NEAR, "nowhere": NEAR}, id="same-zone"),
        pytest.param(
            near(a_term("db", HOST)),
            ["db@a1"],
            {"a2": NEAR, "b1": NEAR, "nowhere": NEAR},
            id="same-host",
        ),
        pytest.param(
            near(a_term("db")),
            [],
            {"a1": NEAR, "a2": NEAR, "b1": NEAR, "nowhere": NEAR},
            id="no-pod-to-be-near",
        ),
        pytest.param(near(a_term("web")), [], {"nowhere": NEAR}, id="first-of-its-own-group"),
        pytest.param(
            near(a_term("web")),
            ["web@b1"],
            {"a1": NEAR, "a2": NEAR, "nowhere": NEAR},
            id="second-of-its-group",
        ),
        pytest.param(
            near(a_term("db"), a_term("web")),
            ["db@a1", "web@b1"],
            {"a1": NEAR, "a2": NEAR, "b1": NEAR, "nowhere": NEAR},
            id="one-pod-must-match-all-terms",
        ),
        pytest.param(apart(a_term("db")), ["db@a1"], {"a1": APART, "a2": APART}, id="apart"),
        pytest.param(apart(a_term("db", HOST)), ["db@a1"], {"a1": APART}, id="apart-by-host"),
        pytest.param(apart(a_term("db")), ["db@nowhere"], {}, id="nowhere-is-no-zone"),
        pytest.param(
            near(a_term("db")) | apart(a_term("db", HOST)),
            ["db@a1"],
            {"a1": APART, "b1": NEAR, "nowhere": NEAR},
            id="near-but-not-too-near",
        ),
    ],
)
def test_own_terms(affinity: dict[str, Any], there: list[str], refused: dict[str, str]) -> None:
    placed = [
        an_app(app, f"p{index}", node=node)
        for index, (app, _, node) in enumerate(text.partition("@") for text in there)
    ]

    assert refused == reasons(InterPodAffinity(), an_app("web", affinity=affinity), zones(*placed))


def test_pods_that_are_there_may_want_to_be_alone() -> None:
    cluster = zones(an_app("db", "loner", node="a1", affinity=apart(a_term("web"))))

    assert reasons(InterPodAffinity(), an_app("web"), cluster) == {"a1": EXISTING, "a2": EXISTING}
    assert reasons(InterPodAffinity(), an_app("other"), cluster) == {}


@pytest.mark.parametrize(
    ("scope", "refused"),
    [
        pytest.param({}, False, id="own-namespace-only"),
        pytest.param({"namespaces": ["other"]}, True, id="by-name"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "x"}}}, True, id="by-namespace-label"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "y"}}}, False, id="another-label"
        ),
        pytest.param({"namespaceSelector": {}}, True, id="everywhere"),
    ],
)
def test_namespaces(scope: dict[str, Any], refused: bool) -> None:
    cluster = zones(an_app("db", "there", node="b1", namespace="other"))
    cluster.set_namespace("other", {"team": "x"})
    pod = an_app("web", affinity=apart(a_term("db", **scope)))

    assert refused is ("b1" in reasons(InterPodAffinity(), pod, cluster))


def test_nothing_to_do_for_plain_pods_among_plain_pods() -> None:
    cluster = zones(an_app("db", "there", node="a1"))

    assert InterPodAffinity().pre_filter(CycleState(), an_app("web"), cluster) == PRE_FILTER_SKIP
    assert InterPodAffinity().pre_score(CycleState(), an_app("web"), cluster, cluster.nodes).is_skip


def test_a_thousand_pods_with_one_term_are_one_comparison() -> None:
    loners = [an_app("db", f"p{i}", node="a1", affinity=apart(a_term("web"))) for i in range(1000)]
    cluster = zones(*loners)

    assert len(list(cluster.terms.anti_affinity.items())) == 1
    assert set(reasons(InterPodAffinity(), an_app("web"), cluster)) == {"a1", "a2"}
    assert cluster.pod_scans == 0


def test_what_if_pods_came_and_went() -> None:
    victim = an_app("db", "victim", node="a1")
    cluster = zones(victim)
    node = cluster.node("a1")
    assert node is not None
    plugin, state = InterPodAffinity(), CycleState()
    pod = an_app("web", affinity=apart(a_term("db")))
    plugin.pre_filter(state, pod, cluster)
    trial = state.clone()

    plugin.remove_pod(trial, pod, victim, node)
    assert plugin.filter(trial, pod, node).is_success
    plugin.add_pod(trial, pod, victim, node)
    assert plugin.filter(trial, pod, node).message == APART
    assert plugin.filter(state, pod, node).message == APART


def scores(
    pod: PodInfo, cluster: ClusterState, plugin: InterPodAffinity | None = None
) -> dict[str, int]:
    plugin = plugin or InterPodAffinity()
    state = CycleState()
    nodes = cluster.nodes
    if plugin.pre_score(state, pod, cluster, nodes).is_skip:
        return {}
    raw = [plugin.score(state, pod, node) for node in nodes]
    plugin.normalize(state, pod, nodes, raw)
    return {node.name: score for node, score in zip(nodes, raw, strict=True)}


def test_preferred_neighbours_and_those_to_avoid() -> None:
    cluster = zones(an_app("db", "db", node="a1"), an_app("noisy", "noisy", node="b1"))
    affinity = preferring("podAffinity", 10, a_term("db")) | preferring(
        "podAntiAffinity", 10, a_term("noisy")
    )

    assert scores(an_app("web", affinity=affinity), cluster) == {
        "a1": 100, "a2": 100, "b1": 0, "nowhere": 50,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("affinity", "args", "expected"),
    [
        pytest.param(near(a_term("web")), {}, 100, id="required-affinity-counts-as-a-wish"),
        pytest.param(near(a_term("web")), {"hardPodAffinityWeight": 0}, None, id="unless-told-not"),
        pytest.param(preferring("podAffinity", 5, a_term("web")), {}, 100, id="preferred"),
        pytest.param(
            preferring("podAffinity", 5, a_term("web")),
            {"ignorePreferredTermsOfExistingPods": True},
            None,
            id="preferences-of-others-can-be-ignored",
        ),
    ],
)
def test_wishes_of_pods_that_are_there(
    affinity: dict[str, Any], args: dict[str, Any], expected: int | None
) -> None:
    cluster = zones(an_app("db", "there", node="b1", affinity=affinity))

    assert expected == scores(an_app("web"), cluster, InterPodAffinity(args)).get("b1")


@pytest.mark.parametrize(
    ("pod", "old", "new", "worth"),
    [
        pytest.param(
            an_app("web", affinity=near(a_term("db"))), None, an_app("db"), True, id="friend-came"
        ),
        pytest.param(
            an_app("web", affinity=near(a_term("db"))), None, an_app("x"), False, id="stranger-came"
        ),
        pytest.param(
            an_app("web", affinity=apart(a_term("db"))), an_app("db"), None, True, id="foe-went"
        ),
        pytest.param(
            an_app("web"), an_app("x", affinity=apart(a_term("web"))), None, True, id="loner-went"
        ),
        pytest.param(an_app("web"), an_app("x"), None, False, id="stranger-went"),
    ],
)
def test_hints(pod: PodInfo, old: Any, new: Any, worth: bool) -> None:
    hint = InterPodAffinity().events_to_register()[0].hint

    assert hint is not None
    assert (Hint.QUEUE if worth else Hint.SKIP) == hint(pod, old, new)


# --- the law: indexes and counts say what looking at everything says ---


def naive_refusals(pod: PodInfo, cluster: ClusterState) -> dict[str, str]:
    def means(term: PodTerm, other: PodInfo) -> bool:
        labels = cluster.labels_of_namespace(other.namespace)
        return term.matches(other.namespace, other.labels, labels)

    def together(term: PodTerm, one: str, other: str) -> bool:
        nodes = cluster.node(one), cluster.node(other)
        values = [node.labels.get(term.topology_key) for node in nodes if node is not None]
        return len(values) == 2 and values[0] is not None and values[0] == values[1]

    def is_placed(term: PodTerm, name: str) -> bool:
        return together(term, name, name)

    others = list(cluster.pods.values())
    friends = [other for other in others if all(means(term, other) for term in pod.affinity)]
    starts_group = all(means(term, pod) for term in pod.affinity) and not any(
        is_placed(term, friend.node_name) for friend in friends for term in pod.affinity
    )
    found = {}
    for node in cluster.nodes:
        name = node.name
        near_all = all(
            any(together(term, name, friend.node_name) for friend in friends)
            for term in pod.affinity
        )
        has_keys = all(is_placed(term, name) for term in pod.affinity)
        if pod.affinity and not (has_keys and (near_all or starts_group)):
            found[name] = NEAR
        elif any(
            means(term, other) and together(term, name, other.node_name)
            for term in pod.anti_affinity
            for other in others
        ):
            found[name] = APART
        elif any(
            means(term, pod) and together(term, name, other.node_name)
            for other in others
            for term in other.anti_affinity
        ):
            found[name] = EXISTING
    return found


apps = st.sampled_from(["web", "db"])
terms = st.builds(a_term, apps, st.sampled_from([ZONE, HOST]))
affinities = st.builds(
    lambda friends, foes: near(*friends) | apart(*foes),
    st.lists(terms, max_size=2),
    st.lists(terms, max_size=1),
)


@st.composite
def placed_pods(draw: st.DrawFn) -> list[PodInfo]:
    number = draw(st.integers(0, 5))
    return [
        an_app(
            draw(apps),
            f"p{index}",
            node=draw(st.sampled_from([*NODES, "nowhere", "unknown"])),
            affinity=draw(affinities),
        )
        for index in range(number)
    ]


@settings(deadline=None, max_examples=200)
@given(apps, affinities, placed_pods())
def test_agrees_with_looking_at_everything(
    app: str, affinity: dict[str, Any], placed: Iterable[PodInfo]
) -> None:
    cluster = zones(*placed)
    pod = an_app(app, affinity=affinity)

    assert naive_refusals(pod, cluster) == reasons(InterPodAffinity(), pod, cluster)
