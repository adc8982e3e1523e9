"""The scenario format: paths, expectations, placeholders, references and steps."""

from __future__ import annotations

import msgspec
import pytest

from tests.acceptance.runner.expectations import OPERATORS, ErrorExpectation, unmet
from tests.acceptance.runner.kubectl import Output, unmet_by
from tests.acceptance.runner.paths import Json, find, parse_path, remove_at, set_at
from tests.acceptance.runner.placeholders import fill_in
from tests.acceptance.runner.resources import path_of_collection, path_of_reference
from tests.acceptance.runner.scenarios import every_step, load_scenarios
from tests.acceptance.runner.steps import KubectlCall, KubectlStep, read_step

DOCUMENT = {
    "kind": "Thing",
    "items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
    "labels": {"x.y/z": "v"},
    "capacity": ["1Gi", "1000m"],
    "twice": ["a", "a"],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "Thing"),
        ("items[1].name", "b"),
        ("items[7].name", None),
        ("items[*].name", ["a", "b"]),
        ("items[*].none", []),
        ("items[?name=b].n", 2),
        ("items[?name=c].n", None),
        ("labels['x.y/z']", "v"),
        ("labels[*]", ["v"]),
        ("kind.of.nothing", None),
        ("", DOCUMENT),
    ],
)
def test_path(path: str, value: Json) -> None:
    assert find(DOCUMENT, path).value == value


def test_bad_path() -> None:
    with pytest.raises(ValueError, match="bad path"):
        parse_path("a[")


def test_writing_at_paths() -> None:
    document: Json = {"spec": {"items": [{"name": "a"}, {"name": "b"}]}}

    set_at(document, "metadata.labels['x.y/z']", "v")
    set_at(document, "spec.items[?name=b].n", 2)
    remove_at(document, "spec.items[0]")
    remove_at(document, "spec.items[0].none.there")

    assert document == {
        "metadata": {"labels": {"x.y/z": "v"}},
        "spec": {"items": [{"name": "b", "n": 2}]},
    }


# path, operator, what holds, what does not
OPERATOR_EXAMPLES: list[tuple[str, str, Json, Json]] = [
    ("kind", "eq", "Thing", "Other"),
    ("kind", "ne", "Other", "Thing"),
    ("kind", "in", ["Other", "Thing"], ["Other"]),
    ("items[*].name", "sorted", ["b", "a"], ["a"]),
    ("items[*].name", "contains", ["a", "b"], ["a", "c"]),
    ("items[*].name", "notContains", "c", ["c", "a"]),
    ("kind", "matches", "^Th", "^hing"),
    ("items", "len", 2, 3),
    ("items", "minLen", 2, 3),
    ("items", "distinct", True, 3),
    ("twice", "distinct", 1, True),
    ("twice", "allEq", "a", "b"),
    ("items[*].none", "sorted", [], ["a"]),
    ("items[0].n", "gt", 0, 1),
    ("items[0].n", "ge", 1, 2),
    ("items[0].n", "lt", 2, 1),
    ("capacity[0]", "qty", "1024Mi", "1G"),
    ("capacity", "qtys", ["1", "1024Mi"], ["1", "1"]),
    ("items[0]", "like", {"n": 1}, {"n": 1, "m": 1}),
    ("items", "any", {"n": 2}, {"n": 3}),
    ("items", "none", {"n": 3}, {"n": 2}),
    ("kind", "exists", True, False),
    ("none", "exists", False, True),
    ("none", "len", 0, 1),
]


@pytest.mark.parametrize(("path", "operator", "holds", "does_not"), OPERATOR_EXAMPLES)
def test_operator(path: str, operator: str, holds: Json, does_not: Json) -> None:
    assert not unmet(DOCUMENT, [{"path": path, operator: holds}])
    assert unmet(DOCUMENT, [{"path": path, operator: does_not}])


def test_every_operator_has_an_example() -> None:
    assert {operator for _, operator, _, _ in OPERATOR_EXAMPLES} == set(OPERATORS)


@pytest.mark.parametrize(
    "operator", ["eq", "contains", "gt", "ge", "lt", "qty", "matches", "allEq"]
)
def test_nothing_there_meets_no_wish(operator: str) -> None:
    assert unmet({}, [{"path": "none", operator: "1"}])


STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "code": 422,
    "reason": "Invalid",
    "message": "it is invalid: spec.x: wrong",
    "details": {"causes": [{"field": "spec.x", "reason": "FieldValueInvalid"}]},
}


@pytest.mark.parametrize(
    ("expected", "is_met"),
    [
        pytest.param({"code": 422, "reason": "Invalid"}, True, id="code-and-reason"),
        pytest.param({"code": [400, 422]}, True, id="one-of-codes"),
        pytest.param({"message": ["invalid", "wrong"], "field": "spec.x"}, True, id="parts"),
        pytest.param({"causeReason": "FieldValueInvalid"}, True, id="cause"),
        pytest.param({"code": 400}, False, id="other-code"),
        pytest.param({"reason": "Conflict"}, False, id="other-reason"),
        pytest.param({"message": ["invalid", "right"]}, False, id="other-message"),
        pytest.param({"field": ["spec.x", "spec.y"]}, False, id="other-field"),
        pytest.param({"causeReason": "FieldValueRequired"}, False, id="other-cause"),
    ],
)
def test_error(expected: dict[str, Json], is_met: bool) -> None:
    wrong = msgspec.convert(expected, ErrorExpectation).unmet(422, STATUS)

    assert (not wrong) == is_met, wrong


@pytest.mark.parametrize(
    ("code", "body"),
    [
        pytest.param(200, {"kind": "Status", "status": "Success"}, id="success"),
        pytest.param(422, "it is invalid", id="text"),
        pytest.param(400, STATUS, id="another-code-inside"),
        pytest.param(422, {**STATUS, "status": "Success"}, id="no-failure"),
    ],
)
def test_no_proper_error(code: int, body: Json) -> None:
    assert ErrorExpectation().unmet(code, body)


def test_placeholders() -> None:
    filled = fill_in({"${P}-x": ["${N}", "${N}${N}", "${UNKNOWN}"]}, {"P": "p", "N": 3})

    assert filled == {"p-x": [3, "33", "${UNKNOWN}"]}


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("pods/p", "/api/v1/namespaces/mine/pods/p"),
        ("pods@*", "/api/v1/pods"),
        ("nodes/n", "/api/v1/nodes/n"),
        (
            "v1beta1:resourceclaims/c/status@other",
            "/apis/resource.k8s.io/v1beta1/namespaces/other/resourceclaims/c/status",
        ),
    ],
)
def test_reference(reference: str, path: str) -> None:
    assert path_of_reference(reference, "mine") == path


def test_manifest_goes_to_its_version_and_namespace() -> None:
    claim: Json = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "ResourceClaim", "metadata": {}}
    elsewhere = {**claim, "metadata": {"namespace": "other"}}
    start = "/apis/resource.k8s.io/v1beta2/namespaces"

    assert path_of_collection(claim, "mine") == f"{start}/mine/resourceclaims"
    assert path_of_collection(elsewhere, "mine") == f"{start}/other/resourceclaims"


@pytest.mark.parametrize(
    ("wishes", "is_met"),
    [
        ({}, True),
        ({"rc": 1}, False),
        ({"stdout": ["kind"]}, True),
        ({"stdout": ["kind", "sort"]}, False),
        ({"stdoutNot": ["kind"]}, False),
        ({"stdoutRe": ["^.*Pod"]}, True),
        ({"stdoutRe": ["^Pod"]}, False),
        ({"stdoutEq": ' {"kind": "Pod"}'}, True),
        ({"stdoutEq": "{}"}, False),
        ({"stderr": ["warning"]}, True),
        ({"stderr": ["error"]}, False),
        ({"json": [{"path": "kind", "eq": "Pod"}]}, True),
        ({"json": [{"path": "kind", "eq": "Node"}]}, False),
    ],
)
def test_output_of_kubectl(wishes: dict[str, Json], is_met: bool) -> None:
    call = msgspec.convert({"args": "get", **wishes}, KubectlCall)
    wrong = unmet_by(Output(0, '{"kind": "Pod"}\n', "warning\n"), call)

    assert (not wrong) == is_met, wrong


def test_output_of_kubectl_that_is_no_json() -> None:
    call = KubectlCall(args="get", json=[{"path": "kind", "exists": False}])

    assert unmet_by(Output(0, "Pod", ""), call) == ["standard output is no JSON"]


def test_every_step_of_every_scenario_can_be_read() -> None:
    """Those that wait for other parts, too: unknown words are found before their time comes."""
    for scenario in (each for file in load_scenarios().values() for each in file):
        for raw in every_step(scenario.steps):
            step = read_step(raw, {})
            expectations = [*getattr(step, "expect", ()), *getattr(step, "expect_headers", ())]
            if isinstance(step, KubectlStep):
                expectations += step.call.json
            for expectation in expectations:
                parse_path(expectation.get("path", ""))
                assert set(expectation) - {"path"} <= set(OPERATORS), scenario.name


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"get": "pods", "wait": "pods"}, id="two-verbs"),
        pytest.param({"expect": []}, id="no-verb"),
        pytest.param({"get": "pods", "body": {}}, id="unknown-word"),
        pytest.param({"get": "pods", "expectError": {"cod": 1}}, id="unknown-word-inside"),
    ],
)
def test_bad_step(raw: dict[str, Json]) -> None:
    with pytest.raises(ValueError, match=r"exactly one verb|unknown field"):
        read_step(raw, {})
