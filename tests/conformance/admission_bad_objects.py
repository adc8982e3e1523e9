"""Policies, bindings and webhook configurations that are refused, and some that are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.admission_cases import (
    REGISTRATION,
    Body,
    Case,
    Request,
    apply_configuration,
    binding,
    json_patch,
    mutating,
    mutating_binding,
    policy,
    rule,
)
from tests.conformance.admission_mutation_cases import webhook

PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}


def path_of(obj: Body) -> str:
    return f"{REGISTRATION}/{PLURALS[obj['kind']]}"


def _policies() -> Iterator[Body]:
    def bad(*validations: Body | str, **spec: Any) -> Body:
        return policy("bad", *validations, **spec)

    yield bad()
    yield bad("true", matchConstraints=None)
    yield bad("true", matchConstraints={})
    yield bad("true", failurePolicy="Sometimes")
    yield bad("")
    yield bad("   ")
    yield bad("object.")
    yield bad("nothing.x")
    yield bad("1 + 2")
    yield bad("object.metadata.name")
    yield bad("'x'")
    yield bad("params.x == 1")
    yield bad("variables.x == 1")
    yield bad("request.nothing == ''")
    yield bad("request.userInfo.username == 1")
    yield bad("namespaceObject.metadata.nothing == ''")
    yield bad("authorizer.nothing()")
    yield bad("authorizer.requestResource.check('x')")
    yield bad("authorizer.group('').check('x').allowed()")
    yield bad("authorizer.group('').resource('pods').check(1).allowed()")
    yield bad("'x'.allowed()")
    yield bad("Object{}.x == 1")
    yield bad("jsonpatch.escapeKey('x') == 'x'")
    yield bad("[1].includes(1)")
    yield bad({"expression": "true", "messageExpression": "1"})
    yield bad({"expression": "true", "messageExpression": "object.metadata.name"})
    yield bad(
        {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}
    )
    yield bad({"expression": "true", "messageExpression": "  "})
    yield bad({"expression": "true", "messageExpression": "object."})
    yield bad({"expression": "true", "message": " "})
    yield bad({"expression": "true", "message": "a\nb"})
    yield bad({"expression": "true\n&& false"})
    yield bad({"expression": "true", "reason": "Conflict"})
    yield bad({"expression": "true", "reason": "Unauthorized"})
    yield bad("true", variables=[{"name": "", "expression": ""}])
    yield bad(
        "true", variables=[{"name": "a-b", "expression": "1"}, {"name": "if", "expression": "1"}]
    )
    yield bad("variables.a", variables=[{"name": "a", "expression": "object."}])
    yield bad("variables.a", variables=[{"name": "a", "expression": "1"}])
    yield bad("variables.b == 1", variables=[{"name": "a", "expression": "1"}])
    yield bad(
        "true",
        variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
    )
    yield bad(
        "true", variables=[{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]
    )
    yield bad("variables.a.nothing == 1", variables=[{"name": "a", "expression": "{'x': 1}"}])
    yield bad("true", paramKind={})
    yield bad("true", paramKind={"apiVersion": "a/b/c", "kind": "X"})
    yield bad("true", paramKind={"apiVersion": "a/", "kind": "x_y"})
    yield bad("true", paramKind={"apiVersion": "A_/V1", "kind": "Xy"})
    yield bad("true", matchConditions=[{"name": "", "expression": ""}])
    yield bad(
        "true",
        matchConditions=[
            {"name": "a b", "expression": "1"},
            {"name": "c", "expression": "variables.x"},
        ],
    )
    yield bad(
        "true",
        matchConditions=[
            {"name": "a", "expression": "true"},
            {"name": "a", "expression": "params.x"},
        ],
    )
    yield bad("true", matchConditions=[{"name": f"a{n}", "expression": "true"} for n in range(65)])
    yield bad(auditAnnotations=[{"key": "", "valueExpression": ""}])
    yield bad(
        auditAnnotations=[
            {"key": "a b", "valueExpression": "1"},
            {"key": "c", "valueExpression": "object.x"},
        ]
    )
    yield bad(
        auditAnnotations=[
            {"key": "a", "valueExpression": "'x'"},
            {"key": "a", "valueExpression": "null"},
        ]
    )
    yield bad(auditAnnotations=[{"key": f"a{n}", "valueExpression": "null"} for n in range(21)])
    changes: Body
    for changes in (
        {"apiGroups": []},
        {"apiGroups": ["*", "a"]},
        {"apiVersions": []},
        {"apiVersions": ["*", "v1"]},
        {"apiVersions": [""]},
        {"operations": []},
        {"operations": ["*", "CREATE"]},
        {"operations": ["LOOK", "CONNECT"]},
        {"resources": []},
        {"resources": ["", "a"]},
        {"resources": ["*/*", "a"]},
        {"resources": ["*", "a"]},
        {"resources": ["a/*", "a/b"]},
        {"resources": ["*/b", "a/b"]},
        {"scope": "Everywhere"},
        {"resourceNames": ["a", "a", "b/c"]},
    ):
        yield bad("true", constraints={"resourceRules": [rule(**changes)]})
    yield bad("true", constraints={"matchPolicy": "Fuzzy"})
    yield bad(
        "true",
        constraints={
            "namespaceSelector": {"matchLabels": {"a b": "c"}},
            "objectSelector": {"matchExpressions": [{"key": "x", "operator": "Near"}]},
        },
    )
    yield bad("true", constraints={"excludeResourceRules": [rule(operations=[])]})
    yield bad("[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2].all(b, object.x.y[a] == b))")
    yield policy("Bad_Name", "true")


def _bindings() -> Iterator[Body]:
    yield binding("bad", policyName="")
    yield binding("bad", policyName="a_b")
    yield binding("bad", validationActions=[])
    yield binding("bad", "Deny", "Warn")
    yield binding("bad", "Deny", "Deny")
    yield binding("bad", "Shout", "Audit")
    yield binding("bad", paramRef={})
    yield binding("bad", paramRef={"name": "a/b", "parameterNotFoundAction": "Deny"})
    yield binding("bad", paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"})
    yield binding("bad", paramRef={"name": "a", "parameterNotFoundAction": "Wait"})
    yield binding("bad", paramRef={"name": "a"})
    yield binding(
        "bad",
        paramRef={"selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "Allow"},
    )
    yield binding(
        "bad", matchResources={"matchPolicy": "Fuzzy", "resourceRules": [rule(operations=[])]}
    )
    yield mutating_binding("bad", policyName="")
    yield mutating_binding("bad", policyName="a_b")
    yield mutating_binding("bad", paramRef={"name": "a", "parameterNotFoundAction": "Wait"})
    yield mutating_binding(
        "bad", matchResources={"matchPolicy": "Fuzzy", "resourceRules": [rule(operations=[])]}
    )


def _mutating() -> Iterator[Body]:
    def bad(*mutations: Body, **spec: Any) -> Body:
        return mutating("bad", *mutations, **spec)

    fine = json_patch("[JSONPatch{op: 'add', path: '/x', value: 'y'}]")
    yield bad()
    yield bad(json_patch("[]"))
    yield bad(fine)
    yield bad(fine, failurePolicy="Sometimes")
    yield bad(fine, reinvocationPolicy="Always")
    yield bad(fine, reinvocationPolicy="")
    yield bad(fine, matchConstraints=None)
    yield bad({})
    yield bad({"patchType": "Merge"})
    yield bad({"patchType": "JSONPatch"})
    yield bad({"patchType": "ApplyConfiguration"})
    yield bad(fine | {"applyConfiguration": {"expression": "Object{}"}})
    yield bad(apply_configuration("Object{}") | {"jsonPatch": {"expression": "[]"}})
    yield bad(json_patch(""))
    yield bad(json_patch("  "))
    yield bad(json_patch("1"))
    yield bad(json_patch("[1]"))
    yield bad(json_patch("object."))
    yield bad(json_patch("[JSONPatch{nothing: 1}]"))
    yield bad(json_patch("[JSONPatch{op: 1}]"))
    yield bad(json_patch("[Object{}]"))
    yield bad(json_patch("[JSONPatch{op: 'add', path: '/x', value: {'a': [1, dyn('x')]}}]"))
    yield bad(json_patch("[jsonpatch.escapeKey(1)]"))
    yield bad(json_patch("JSONPatch{}"))
    yield bad(apply_configuration(""))
    yield bad(apply_configuration("1"))
    yield bad(apply_configuration("{}"))
    yield bad(apply_configuration("Object.spec{}"))
    yield bad(apply_configuration("Object{spec: Nothing{}}"))
    yield bad(apply_configuration("Object{spec: Object.spec{a: 1}}"))
    yield bad(apply_configuration("JSONPatch{}"))
    yield bad(fine, variables=[{"name": "a", "expression": "object."}])
    yield bad(fine, variables=[{"name": "", "expression": "1"}])
    yield bad(fine, matchConditions=[{"name": "a", "expression": "1"}])
    yield bad(fine, paramKind={"apiVersion": "v1", "kind": ""})
    yield bad(json_patch("params.x"))
    yield bad(fine, constraints={"resourceRules": [rule(operations=["DELETE"])]})
    yield bad(fine, constraints={"resourceRules": [rule(operations=["CONNECT"])]})
    yield bad(fine, constraints={"resourceRules": [rule(operations=["*"])]})
    yield bad(fine, constraints={"resourceRules": [rule(operations=["CREATE"])]})
    yield bad(fine, constraints={"resourceRules": []})


def _webhooks() -> Iterator[Body]:
    service: Body = {"name": "a", "namespace": "b"}
    changes: Body
    for changes in (
        {"name": ""},
        {"name": "short"},
        {"name": "two.parts"},
        {"name": "UPPER.example.com"},
        {"clientConfig": {}},
        {"clientConfig": {"url": "https://a/b", "service": service}},
        {"clientConfig": {"url": ""}},
        {"clientConfig": {"url": "http://a/b"}},
        {"clientConfig": {"url": "https://"}},
        {"clientConfig": {"url": "https://u:p@a/b"}},
        {"clientConfig": {"url": "https://a/b?c=d"}},
        {"clientConfig": {"url": "https://a/b#c"}},
        {"clientConfig": {"url": "%zz"}},
        {"clientConfig": {"service": {"name": "", "namespace": ""}}},
        {"clientConfig": {"service": service | {"path": "x"}}},
        {"clientConfig": {"service": service | {"path": "/"}}},
        {"clientConfig": {"service": service | {"path": "/a//b/"}}},
        {"clientConfig": {"service": service | {"path": "/a/B_c?x=1"}}},
        {"clientConfig": {"service": service | {"port": 0}}},
        {"clientConfig": {"service": service | {"port": 70000}}},
        {"clientConfig": {"url": "https://a/b", "caBundle": "bm90IGEgY2VydGlmaWNhdGU="}},
        {"sideEffects": None},
        {"sideEffects": "Some"},
        {"sideEffects": "Unknown"},
        {"sideEffects": "Maybe"},
        {"timeoutSeconds": 0},
        {"timeoutSeconds": 31},
        {"failurePolicy": "Sometimes"},
        {"matchPolicy": "Fuzzy"},
        {"admissionReviewVersions": []},
        {"admissionReviewVersions": ["v2"]},
        {"admissionReviewVersions": ["v1", "v1", "1"]},
        {"rules": [rule(operations=[])]},
        {"rules": [rule(resources=["*/*", "a"], scope="Here")]},
        {"rules": []},
        {"namespaceSelector": {"matchLabels": {"a": "b c"}}},
        {"objectSelector": {"matchExpressions": [{"key": "", "operator": "In"}]}},
        {"matchConditions": [{"name": "a", "expression": "1"}]},
        {
            "matchConditions": [
                {"name": "a", "expression": "params.x == 1"},
                {"name": "a", "expression": "namespaceObject.x"},
            ]
        },
        {"matchConditions": [{"name": "", "expression": " "}]},
        {
            "matchConditions": [
                {
                    "name": "a",
                    "expression": "authorizer.group('').resource('pods').check('get').allowed()",
                }
            ]
        },
    ):
        base = {"clientConfig": {"url": "https://127.0.0.1:1/x"}, "rules": [rule(["nothing"])]}
        yield webhook("Validating", "bad", "/x", **(base | changes))
    base = {"clientConfig": {"url": "https://127.0.0.1:1/x"}, "rules": [rule(["nothing"])]}
    yield webhook("Mutating", "bad", "/x", **base, reinvocationPolicy="Always")
    yield webhook("Mutating", "bad", "/x", **(base | {"sideEffects": "Some", "timeoutSeconds": 99}))
    twice = webhook("Mutating", "bad", "/x", **base)
    yield twice | {"webhooks": twice["webhooks"] * 2}
    yield twice | {"webhooks": []}
    yield twice | {"metadata": {"name": "Bad_"}}


def _trial(number: int, obj: Body) -> Case:
    """Create it, and delete it if that succeeded."""
    where = path_of(obj)
    return Case(
        f"bad-{number:03}",
        (),
        [Request("POST", where, obj), Request("DELETE", f"{where}/{obj['metadata']['name']}")],
    )


BAD_OBJECTS = [
    _trial(number, obj)
    for number, obj in enumerate((*_policies(), *_bindings(), *_mutating(), *_webhooks()))
]
