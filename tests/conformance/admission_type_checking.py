"""Policies whose expressions do not fit the types of the objects that they are about."""

from __future__ import annotations

from typing import Any

from tests.conformance.admission_cases import Body, policy, rule

DEPLOYMENTS: Body = {"resourceRules": [rule(["deployments"], apiGroups=["apps"])]}
SETS: Body = {"resourceRules": [rule(["deployments", "statefulsets"], apiGroups=["apps"])]}
CLAIMS: Body = {"resourceRules": [rule(["resourceclaims"], apiGroups=["resource.k8s.io"])]}
WILD: Body = {"resourceRules": [rule(["*"], apiGroups=["apps"])]}
WILD_VERSION: Body = {"resourceRules": [rule(["configmaps"], apiVersions=["*"])]}
SCALE: Body = {"resourceRules": [rule(["deployments/scale"], apiGroups=["apps"])]}
UNKNOWN: Body = {"resourceRules": [rule(["nothings"], apiGroups=["example.com"])]}
SEVERAL: Body = {
    "resourceRules": [rule(), rule(["deployments"], apiGroups=["apps"], apiVersions=["v1"])]
}
PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}


def _case(name: str, constraints: Body, *validations: Body | str, **spec: Any) -> Body:
    return policy(f"tc-{name}", *validations, cluster=True, constraints=constraints, **spec)


POLICIES = [
    _case("fine", DEPLOYMENTS, "object.spec.replicas < 3 && object.metadata.name.startsWith('a')"),
    _case("type", DEPLOYMENTS, "object.spec.replicas == 'x'"),
    _case("field", DEPLOYMENTS, "has(object.spec.nothing)", "object.spec.nothing == 1"),
    _case("old", DEPLOYMENTS, "oldObject == null || oldObject.spec.replica == 1"),
    _case("message", DEPLOYMENTS, {"expression": "true", "messageExpression": "string(object.spec.wrong)"}),
    _case("two", SETS, "object.spec.serviceName == 'x' && object.spec.strategy.type == 'y'"),
    _case("claims", CLAIMS, "object.spec.devices.requests.all(r, r.deviceClassName == 'x')"),
    _case("opaque", CLAIMS, "object.spec.devices.config[0].opaque.parameters.size <= 3"),
    _case("wild", WILD, "object.spec.nothing == 1"),
    _case("wild-version", WILD_VERSION, "object.dat.x == 'y'"),
    _case("scale", SCALE, "object.spec.replica < 3"),
    _case("unknown", UNKNOWN, "object.spec.nothing == 1"),
    _case("several", SEVERAL, "object.nothing == 1"),
    _case("params", DEPLOYMENTS, "params.dat.x == 'y'", "params.data.x == 1", paramKind=PARAMS),
    _case("variables", DEPLOYMENTS, "variables.x.size() > 1", "variables.y", variables=[{"name": "x", "expression": "object.spec.replicas"}, {"name": "y", "expression": "object.spec.wrong == 1"}]),
    _case("conditions", DEPLOYMENTS, "true", matchConditions=[{"name": "c", "expression": "object.spec.wrong == 1"}]),
    _case("annotations", DEPLOYMENTS, "true", auditAnnotations=[{"key": "k", "valueExpression": "string(object.spec.wrong)"}]),
    _case("labels", DEPLOYMENTS, "object.metadata.labels['a'] == 1", "object.metadata.labels.a == 'x'", "object.spec.template.spec.containers[0].image == 3"),
    _case("quantities", DEPLOYMENTS, "object.spec.template.spec.containers[0].resources.limits['cpu'] == 3", "object.spec.strategy.rollingUpdate.maxSurge == 3", "object.metadata.creationTimestamp == 'x'"),
    _case("request", DEPLOYMENTS, "request.userInfo.username == 'x' && authorizer.requestResource.check('x').allowed() && namespaceObject.metadata.name == 'x'"),
]  # fmt: skip
