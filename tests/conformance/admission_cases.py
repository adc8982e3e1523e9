"""Policies, bindings and webhook configurations, and requests that they are about.

`admission_steps.py` plays them on a real API server to record its answers, `test_admission.py` on ours to compare.
A case has a namespace of its own, and its policies hold for this namespace only, so that cases do not meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
API_VERSION = "admissionregistration.k8s.io/v1"
Body = dict[str, Any]


class Request(NamedTuple):
    """One request of a case. `{ns}` in path and body is the case's namespace."""

    method: str
    path: str
    body: Body | None = None
    user: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


class Case(NamedTuple):
    """Configuration that is created first, and the requests that are then sent."""

    name: str
    config: Sequence[Body] = ()
    requests: Sequence[Request] = ()
    before: Sequence[Request] = ()
    """Sent before the configuration is created; they succeed."""


# --- builders ---


def rule(resources: Sequence[str] = ("configmaps",), **changes: Any) -> Body:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": list(resources),
    } | changes


def within(name: str) -> Body:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}


def policy(name: str, *validations: Body | str, cluster: bool = False, **spec: Any) -> Body:
    """A ValidatingAdmissionPolicy for the ConfigMaps of one namespace."""
    constraints = {"resourceRules": [rule()]} | spec.pop("constraints", {})
    if not cluster:
        constraints.setdefault("namespaceSelector", within(name))
    return {
        "kind": "ValidatingAdmissionPolicy",
        "apiVersion": API_VERSION,
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": constraints,
            "validations": [
                {"expression": each} if isinstance(each, str) else each for each in validations
            ],
        }
        | spec,
    }


def binding(name: str, *actions: str, policy_name: str = "", **spec: Any) -> Body:
    return {
        "kind": "ValidatingAdmissionPolicyBinding",
        "apiVersion": API_VERSION,
        "metadata": {"name": name},
        "spec": {
            "policyName": policy_name or name,
            "validationActions": list(actions) or ["Deny"],
        }
        | spec,
    }


def mutating(name: str, *mutations: Body, **spec: Any) -> Body:
    constraints = {"resourceRules": [rule()], "namespaceSelector": within(name)}
    return {
        "kind": "MutatingAdmissionPolicy",
        "apiVersion": API_VERSION,
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": constraints | spec.pop("constraints", {}),
            "reinvocationPolicy": "Never",
            "mutations": list(mutations),
        }
        | spec,
    }


def mutating_binding(name: str, policy_name: str = "", **spec: Any) -> Body:
    return {
        "kind": "MutatingAdmissionPolicyBinding",
        "apiVersion": API_VERSION,
        "metadata": {"name": name},
        "spec": {"policyName": policy_name or name} | spec,
    }


def json_patch(expression: str) -> Body:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def apply_configuration(expression: str) -> Body:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def config_map(name: str = "m", *, labels: Any = None, **data: str) -> Body:
    metadata: Body = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}


MAPS = "/api/v1/namespaces/{ns}/configmaps"


def create(name: str = "m", **data: str) -> Request:
    return Request("POST", MAPS, config_map(name, labels=None, **data))


def update(name: str = "m", **data: str) -> Request:
    return Request("PUT", f"{MAPS}/{name}", config_map(name, labels=None, **data))


def delete(name: str = "m") -> Request:
    return Request("DELETE", f"{MAPS}/{name}")


def denied(name: str, expression: str, *requests: Request, **spec: Any) -> Case:
    """A case with one policy of one expression that denies."""
    return Case(name, [policy(name, expression, **spec), binding(name)], requests or [create()])


# --- validating policies ---

PARAM_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}


def with_params(name: str, expression: str, ref: Body, *before: Body, **spec: Any) -> Case:
    return Case(
        name,
        [
            policy(name, expression, paramKind=PARAM_KIND, **spec),
            binding(name, paramRef={"parameterNotFoundAction": "Deny"} | ref),
        ],
        [create("a"), create("b", limit="9")],
        [Request("POST", MAPS, each) for each in before],
    )


POLICIES = [
    denied("vap-name", "object.metadata.name != 'bad'", create("bad"), create("good")),
    denied("vap-expression-text", "  has(object.data) &&\n  object.data.x == 'y'  "),
    denied("vap-missing-key", "object.data.nothing == 'x'"),
    denied("vap-missing-key-ignored", "object.data.nothing == 'x'", failurePolicy="Ignore"),
    denied("vap-absorbed", "object.data.nothing == 'x' || object.metadata.name == 'm'"),
    denied("vap-wrong-type", "object.metadata.name > 3"),
    denied(
        "vap-numbers",
        "object.metadata.name.size() == 1 && object.data.n == '1' && int(object.data.n) < 1.5",
    ),
    denied(
        "vap-old-object",
        "oldObject == null || object.data == oldObject.data",
        create(x="1"),
        update(x="2"),
        update(x="1"),
    ),
    denied(
        "vap-delete",
        "request.operation != 'DELETE' || oldObject.data.keep != 'yes'",
        create(keep="yes"),
        delete(),
        create("n", keep="no"),
        delete("n"),
    ),
    denied(
        "vap-delete-collection",
        "request.operation != 'DELETE' || request.name != ''",
        create("a"),
        Request("DELETE", MAPS),
        delete("a"),
    ),
    denied(
        "vap-user",
        "request.userInfo.username == 'alice' && 'devs' in request.userInfo.groups",
        create()._replace(user="alice", groups=("devs", "system:masters")),
        create("n")._replace(user="bob", groups=("system:masters",)),
    ),
    denied(
        "vap-extra",
        "request.userInfo.extra['example.com/team'][0] == 'blue'",
        create()._replace(
            user="alice", groups=("system:masters",), extra=(("example.com/team", "blue"),)
        ),
        create("n")._replace(
            user="alice", groups=("system:masters",), extra=(("example.com/team", "red"),)
        ),
        create("o")._replace(user="alice", groups=("system:masters",)),
    ),
    denied(
        "vap-request",
        "[request.kind.kind, request.resource.resource, request.namespace, request.name, request.operation, string(request.dryRun), request.requestKind.version, string(has(request.subResource)), string(request.options.kind)].join(',') == ''",
        create(),
        Request("POST", MAPS + "?dryRun=All&fieldManager=me", config_map("d")),
    ),
    Case(
        "vap-request-shown",
        [
            policy(
                "vap-request-shown",
                {
                    "expression": "false",
                    "messageExpression": "[request.kind.kind, request.kind.group, request.resource.resource, request.resource.version, request.namespace, request.name, request.operation, string(request.dryRun), request.requestKind.version, request.requestResource.resource, string(request.options.kind), string(has(request.subResource)), string(has(request.requestSubResource)), string(request.?options.?fieldManager.orValue('none'))].join(',')",
                },
            ),
            binding("vap-request-shown"),
        ],
        [
            create(),
            Request("POST", MAPS + "?dryRun=All&fieldManager=me", config_map("d")),
            Request(
                "POST",
                MAPS,
                {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "g-"}},
            ),
        ],
    ),
    Case(
        "vap-namespace-object",
        [
            policy(
                "vap-namespace-object",
                {
                    "expression": "namespaceObject.metadata.name == 'x'",
                    "messageExpression": "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] + ' ' + namespaceObject.status.phase + ' ' + string(size(namespaceObject.spec.finalizers)) + string(has(namespaceObject.metadata.annotations))",
                },
            ),
            binding("vap-namespace-object"),
        ],
        [create()],
    ),
    Case(
        "vap-namespace-object-cluster",
        [
            policy(
                "vap-namespace-object-cluster",
                "namespaceObject == null",
                cluster=True,
                constraints={
                    "resourceRules": [rule(["deviceclasses"], apiGroups=["resource.k8s.io"])],
                    "objectSelector": {"matchLabels": {"case": "nsobj"}},
                },
            ),
            binding("vap-namespace-object-cluster"),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/deviceclasses",
                {
                    "kind": "DeviceClass",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": "vap-nsobj", "labels": {"case": "nsobj"}},
                    "spec": {},
                },
            )
        ],
    ),
    *(
        Case(
            f"vap-message-{letter}",
            [policy(f"vap-message-{letter}", each), binding(f"vap-message-{letter}")],
            [create()],
        )
        for letter, each in {
            "plain": {"expression": "false", "message": "  must not be "},
            "expression": {
                "expression": "false",
                "message": "unused",
                "messageExpression": "'name ' + object.metadata.name",
            },
            "failed": {
                "expression": "false",
                "message": "fallback",
                "messageExpression": "string(object.data.nothing)",
            },
            "lines": {
                "expression": "false",
                "message": "fallback",
                "messageExpression": "'two\\nlines'",
            },
            "blank": {"expression": "false", "messageExpression": "'   '"},
            "long": {
                "expression": "false",
                "message": "short",
                "messageExpression": "'x'.replace('x', 'yyyyyyyyyyyyyyyy').replace('y', 'zzzzzzzzzzzzzzzz').replace('z', 'wwwwwwwwwwwwwwwwwwww').replace('w', 'vv')",
            },
            "forbidden": {"expression": "false", "message": "f", "reason": "Forbidden"},
            "large": {"expression": "false", "message": "g", "reason": "RequestEntityTooLarge"},
            "invalid": {"expression": "false", "message": "i", "reason": "Invalid"},
        }.items()
    ),
    Case(
        "vap-first-denial",
        [
            policy(
                "vap-first-denial",
                "true",
                "object.metadata.name == 'x'",
                "object.metadata.name == 'y'",
            ),
            binding("vap-first-denial"),
        ],
        [create()],
    ),
    Case(
        "vap-warn",
        [
            policy("vap-warn", {"expression": "false", "message": "think again"}, "1 > 2"),
            binding("vap-warn", "Warn", "Audit"),
        ],
        [create()],
    ),
    Case(
        "vap-warn-and-deny",
        [
            policy("vap-warn-and-deny", "false"),
            binding("vap-warn-and-deny-1", "Warn", policy_name="vap-warn-and-deny"),
            binding("vap-warn-and-deny-2", "Deny", policy_name="vap-warn-and-deny"),
        ],
        [create()],
    ),
    Case(
        "vap-warn-error",
        [policy("vap-warn-error", "object.data.nothing == 'x'"), binding("vap-warn-error", "Warn")],
        [create()],
    ),
    Case("vap-audit", [policy("vap-audit", "false"), binding("vap-audit", "Audit")], [create()]),
    Case("vap-unbound", [policy("vap-unbound", "false")], [create()]),
    Case(
        "vap-binding-only",
        [binding("vap-binding-only", policy_name="vap-no-such-policy")],
        [create()],
    ),
    denied(
        "vap-variables",
        "variables.size < 2 && variables.name.startsWith('m')",
        create(a="1"),
        create("m2", a="1", b="2"),
        create("n"),
        variables=[
            {"name": "size", "expression": "has(object.data) ? size(object.data) : 0"},
            {"name": "name", "expression": "object.metadata.name + string(variables.size)"},
        ],
    ),
    denied(
        "vap-variable-fails",
        "variables.x == 'y'",
        variables=[{"name": "x", "expression": "object.data.nothing"}],
    ),
    denied(
        "vap-variable-unused-fails",
        "true",
        variables=[{"name": "x", "expression": "object.data.nothing"}],
    ),
    denied(
        "vap-conditions",
        "false",
        create(),
        create("skip"),
        create("fail", x="1"),
        matchConditions=[
            {"name": "not-skipped", "expression": "object.metadata.name != 'skip'"},
            {"name": "has-no-x", "expression": "!has(object.data) || object.data.x != '1'"},
        ],
    ),
    denied(
        "vap-condition-fails",
        "true",
        matchConditions=[{"name": "broken", "expression": "object.data.nothing == 'x'"}],
    ),
    denied(
        "vap-condition-fails-ignored",
        "false",
        matchConditions=[{"name": "broken", "expression": "object.data.nothing == 'x'"}],
        failurePolicy="Ignore",
    ),
    denied(
        "vap-condition-fails-but-other-false",
        "false",
        matchConditions=[
            {"name": "broken", "expression": "object.data.nothing == 'x'"},
            {"name": "no", "expression": "false"},
        ],
    ),
    with_params(
        "vap-param",
        "object.metadata.name != params.data.forbidden",
        {"name": "p"},
        config_map("p", forbidden="b"),
    ),
    with_params("vap-param-missing", "true", {"name": "nothing"}),
    with_params(
        "vap-param-missing-allowed",
        "false",
        {"name": "nothing", "parameterNotFoundAction": "Allow"},
    ),
    with_params("vap-param-missing-ignored", "true", {"name": "nothing"}, failurePolicy="Ignore"),
    with_params(
        "vap-param-selected",
        "object.metadata.name != params.data.forbidden",
        {"selector": {"matchLabels": {"role": "param"}}},
        config_map("p", labels={"role": "param"}, forbidden="b"),
        config_map("q", labels={"role": "param"}, forbidden="z"),
    ),
    with_params(
        "vap-param-selected-none", "true", {"selector": {"matchLabels": {"role": "param"}}}
    ),
    with_params(
        "vap-param-elsewhere",
        "params.metadata.namespace == 'default' && params.kind == 'ConfigMap'",
        {"name": "vap-elsewhere", "namespace": "default"},
    ),
    Case(
        "vap-param-no-ref",
        [
            policy(
                "vap-param-no-ref", "params == null || params.data.x == 'y'", paramKind=PARAM_KIND
            ),
            binding("vap-param-no-ref"),
        ],
        [create()],
    ),
    Case(
        "vap-param-cluster-object",
        [
            policy(
                "vap-param-cluster-object",
                "true",
                cluster=True,
                paramKind=PARAM_KIND,
                constraints={
                    "resourceRules": [rule(["deviceclasses"], apiGroups=["resource.k8s.io"])],
                    "objectSelector": {"matchLabels": {"case": "param"}},
                },
            ),
            binding(
                "vap-param-cluster-object",
                paramRef={"name": "p", "parameterNotFoundAction": "Deny"},
            ),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/deviceclasses",
                {
                    "kind": "DeviceClass",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": "vap-param", "labels": {"case": "param"}},
                    "spec": {},
                },
            )
        ],
    ),
    Case(
        "vap-param-unknown-kind",
        [
            policy(
                "vap-param-unknown-kind",
                "true",
                paramKind={"apiVersion": "example.com/v1", "kind": "Nothing"},
            ),
            binding(
                "vap-param-unknown-kind", paramRef={"name": "p", "parameterNotFoundAction": "Deny"}
            ),
        ],
        [create()],
    ),
    Case(
        "vap-param-namespaced-cluster-kind",
        [
            policy(
                "vap-param-namespaced-cluster-kind",
                "true",
                paramKind={"apiVersion": "v1", "kind": "Namespace"},
            ),
            binding(
                "vap-param-namespaced-cluster-kind",
                paramRef={
                    "name": "default",
                    "namespace": "default",
                    "parameterNotFoundAction": "Deny",
                },
            ),
        ],
        [create()],
    ),
    Case(
        "vap-param-cluster-kind",
        [
            policy(
                "vap-param-cluster-kind",
                "params.metadata.name == 'default'",
                paramKind={"apiVersion": "v1", "kind": "Namespace"},
            ),
            binding(
                "vap-param-cluster-kind",
                paramRef={"name": "default", "parameterNotFoundAction": "Deny"},
            ),
        ],
        [create()],
    ),
    Case(
        "vap-audit-annotation",
        [
            policy(
                "vap-audit-annotation",
                auditAnnotations=[
                    {"key": "name", "valueExpression": "'name: ' + object.metadata.name"},
                    {"key": "none", "valueExpression": "null"},
                ],
            ),
            binding("vap-audit-annotation", "Audit"),
        ],
        [create()],
    ),
    Case(
        "vap-audit-annotation-fails",
        [
            policy(
                "vap-audit-annotation-fails",
                auditAnnotations=[
                    {"key": "name", "valueExpression": "string(object.data.nothing)"}
                ],
            ),
            binding("vap-audit-annotation-fails", "Audit"),
        ],
        [create()],
    ),
    Case(
        "vap-object-selector",
        [
            policy(
                "vap-object-selector",
                "false",
                constraints={
                    "objectSelector": {"matchLabels": {"app": "x"}},
                    "resourceRules": [rule()],
                },
            ),
            binding("vap-object-selector"),
        ],
        [
            create(),
            Request("POST", MAPS, config_map("x", labels={"app": "x"})),
            Request(
                "PATCH",
                MAPS + "/m",
                {"metadata": {"labels": {"app": "x"}}},
                content_type="application/merge-patch+json",
            ),
        ],
    ),
    Case(
        "vap-resource-names",
        [
            policy(
                "vap-resource-names",
                "false",
                constraints={"resourceRules": [rule(resourceNames=["x", "y"])]},
            ),
            binding("vap-resource-names"),
        ],
        [create(), create("x")],
    ),
    Case(
        "vap-excluded",
        [
            policy(
                "vap-excluded",
                "false",
                constraints={
                    "resourceRules": [rule()],
                    "excludeResourceRules": [rule(resourceNames=["free"])],
                },
            ),
            binding("vap-excluded"),
        ],
        [create(), create("free")],
    ),
    Case(
        "vap-operations",
        [
            policy(
                "vap-operations",
                "false",
                constraints={"resourceRules": [rule(operations=["UPDATE"])]},
            ),
            binding("vap-operations"),
        ],
        [create(), update(a="b"), delete()],
    ),
    Case(
        "vap-binding-matches",
        [
            policy("vap-binding-matches", "false"),
            binding(
                "vap-binding-matches", matchResources={"resourceRules": [rule(resourceNames=["x"])]}
            ),
        ],
        [create(), create("x")],
    ),
    Case(
        "vap-equivalent",
        [
            policy(
                "vap-equivalent",
                {
                    "expression": "false",
                    "messageExpression": "request.kind.version + ' ' + request.requestKind.version + ' ' + object.apiVersion",
                },
                constraints={
                    "resourceRules": [
                        rule(
                            ["resourceclaims"],
                            apiGroups=["resource.k8s.io"],
                            apiVersions=["v1beta1"],
                        )
                    ]
                },
            ),
            binding("vap-equivalent"),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
                {
                    "kind": "ResourceClaim",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": "c"},
                    "spec": {
                        "devices": {
                            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
                        }
                    },
                },
            )
        ],
    ),
    Case(
        "vap-exact",
        [
            policy(
                "vap-exact",
                "false",
                constraints={
                    "matchPolicy": "Exact",
                    "resourceRules": [
                        rule(
                            ["resourceclaims"],
                            apiGroups=["resource.k8s.io"],
                            apiVersions=["v1beta1"],
                        )
                    ],
                },
            ),
            binding("vap-exact"),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
                {
                    "kind": "ResourceClaim",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": "c"},
                    "spec": {
                        "devices": {
                            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
                        }
                    },
                },
            ),
            Request(
                "POST",
                "/apis/resource.k8s.io/v1beta1/namespaces/{ns}/resourceclaims",
                {
                    "kind": "ResourceClaim",
                    "apiVersion": "resource.k8s.io/v1beta1",
                    "metadata": {"name": "d"},
                    "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
                },
            ),
        ],
    ),
    Case(
        "vap-claim",
        [
            policy(
                "vap-claim",
                "object.spec.devices.requests.all(r, r.exactly.deviceClassName != 'gold')",
                constraints={
                    "resourceRules": [rule(["resourceclaims"], apiGroups=["resource.k8s.io"])]
                },
            ),
            binding("vap-claim"),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
                {
                    "kind": "ResourceClaim",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": name},
                    "spec": {
                        "devices": {
                            "requests": [{"name": "r", "exactly": {"deviceClassName": name}}]
                        }
                    },
                },
            )
            for name in ("gold", "iron")
        ],
    ),
    Case(
        "vap-claim-config",
        [
            policy(
                "vap-claim-config",
                "object.spec.devices.config[0].opaque.parameters.size <= 3",
                constraints={
                    "resourceRules": [rule(["resourceclaims"], apiGroups=["resource.k8s.io"])]
                },
            ),
            binding("vap-claim-config"),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
                {
                    "kind": "ResourceClaim",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": f"c{size}"},
                    "spec": {
                        "devices": {
                            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
                            "config": [
                                {
                                    "opaque": {
                                        "driver": "a.example.com",
                                        "parameters": {"size": size},
                                    }
                                }
                            ],
                        }
                    },
                },
            )
            for size in (3, 4)
        ],
    ),
    Case(
        "vap-subresource",
        [
            policy(
                "vap-subresource",
                {
                    "expression": "false",
                    "messageExpression": "request.subResource + ' ' + object.kind + ' ' + request.operation",
                },
                constraints={
                    "resourceRules": [
                        rule(["resourceclaims/status"], apiGroups=["resource.k8s.io"])
                    ]
                },
            ),
            binding("vap-subresource"),
        ],
        [
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
                {
                    "kind": "ResourceClaim",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": "c"},
                    "spec": {
                        "devices": {
                            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
                        }
                    },
                },
            ),
            Request(
                "PATCH",
                "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims/c/status",
                {"status": {}, "metadata": {"labels": {"a": "b"}}},
                content_type="application/merge-patch+json",
            ),
        ],
    ),
    Case(
        "vap-wildcard-subresources",
        [
            policy(
                "vap-wildcard-subresources",
                {
                    "expression": "false",
                    "messageExpression": "request.resource.resource + ' ' + request.?subResource.orValue('') + ' ' + object.kind",
                },
                constraints={
                    "resourceRules": [
                        rule(
                            ["*/*"],
                            apiGroups=["*"],
                            apiVersions=["*"],
                            operations=["CREATE"],
                            scope="Namespaced",
                        )
                    ]
                },
            ),
            binding("vap-wildcard-subresources"),
        ],
        [
            create(),
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/serviceaccounts",
                {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "s"}},
            ),
            Request(
                "POST",
                "/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews",
                {
                    "kind": "LocalSubjectAccessReview",
                    "apiVersion": "authorization.k8s.io/v1",
                    "metadata": {"namespace": "{ns}"},
                    "spec": {
                        "user": "x",
                        "resourceAttributes": {
                            "verb": "get",
                            "namespace": "{ns}",
                            "resource": "pods",
                        },
                    },
                },
            ),
        ],
    ),
    Case(
        "vap-token",
        [
            policy(
                "vap-token",
                {
                    "expression": "false",
                    "messageExpression": "request.resource.resource + ' ' + request.?subResource.orValue('') + ' ' + object.kind + ' ' + request.kind.group",
                },
                constraints={"resourceRules": [rule(["serviceaccounts/token"])]},
            ),
            binding("vap-token"),
        ],
        [
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/serviceaccounts",
                {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "s"}},
            ),
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/serviceaccounts/s/token",
                {
                    "kind": "TokenRequest",
                    "apiVersion": "authentication.k8s.io/v1",
                    "spec": {"audiences": ["a"]},
                },
            ),
        ],
    ),
    Case(
        "vap-scale",
        [
            policy(
                "vap-scale",
                {
                    "expression": "object.spec.replicas < 3",
                    "messageExpression": "request.kind.kind + ' ' + request.kind.group + ' ' + string(object.spec.replicas)",
                },
                constraints={"resourceRules": [rule(["deployments/scale"], apiGroups=["apps"])]},
            ),
            binding("vap-scale"),
        ],
        [
            Request(
                "POST",
                "/apis/apps/v1/namespaces/{ns}/deployments",
                {
                    "kind": "Deployment",
                    "apiVersion": "apps/v1",
                    "metadata": {"name": "d"},
                    "spec": {
                        "replicas": 1,
                        "selector": {"matchLabels": {"a": "b"}},
                        "template": {
                            "metadata": {"labels": {"a": "b"}},
                            "spec": {"containers": [{"name": "c", "image": "i"}]},
                        },
                    },
                },
            ),
            *(
                Request(
                    "PATCH",
                    "/apis/apps/v1/namespaces/{ns}/deployments/d/scale",
                    {"spec": {"replicas": count}},
                    content_type="application/merge-patch+json",
                )
                for count in (2, 5)
            ),
        ],
    ),
    Case(
        "vap-binding-subresource",
        [
            policy(
                "vap-binding-subresource",
                {
                    "expression": "object.target.name != 'n1'",
                    "messageExpression": "request.kind.kind + ' ' + request.resource.resource + ' ' + request.subResource",
                },
                constraints={"resourceRules": [rule(["pods/binding"])]},
            ),
            binding("vap-binding-subresource"),
        ],
        [
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/pods",
                {
                    "kind": "Pod",
                    "apiVersion": "v1",
                    "metadata": {"name": "p"},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            ),
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/pods/p/binding",
                {
                    "kind": "Binding",
                    "apiVersion": "v1",
                    "metadata": {"name": "p"},
                    "target": {"kind": "Node", "name": "n1"},
                },
            ),
        ],
    ),
    Case(
        "vap-eviction",
        [
            policy(
                "vap-eviction",
                {
                    "expression": "false",
                    "messageExpression": "request.kind.kind + ' ' + request.kind.group + ' ' + request.subResource + ' ' + request.operation",
                },
                constraints={"resourceRules": [rule(["pods/eviction"])]},
            ),
            binding("vap-eviction"),
        ],
        [
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/pods",
                {
                    "kind": "Pod",
                    "apiVersion": "v1",
                    "metadata": {"name": "p"},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            ),
            Request(
                "POST",
                "/api/v1/namespaces/{ns}/pods/p/eviction",
                {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}},
            ),
        ],
    ),
    Case(
        "vap-scope",
        [
            policy(
                "vap-scope",
                "false",
                cluster=True,
                constraints={
                    "resourceRules": [
                        rule(["*"], apiGroups=["resource.k8s.io", ""], scope="Cluster")
                    ],
                    "objectSelector": {"matchLabels": {"case": "scope"}},
                },
            ),
            binding("vap-scope"),
        ],
        [
            Request("POST", MAPS, config_map("x", labels={"case": "scope"})),
            Request(
                "POST",
                "/apis/resource.k8s.io/v1/deviceclasses",
                {
                    "kind": "DeviceClass",
                    "apiVersion": "resource.k8s.io/v1",
                    "metadata": {"name": "vap-scope", "labels": {"case": "scope"}},
                    "spec": {},
                },
            ),
        ],
    ),
    Case(
        "vap-namespaces",
        [
            policy(
                "vap-namespaces",
                "object.metadata.name != 'vap-ns-bad'",
                cluster=True,
                constraints={
                    "resourceRules": [rule(["namespaces"])],
                    "namespaceSelector": {"matchLabels": {"case": "namespaces"}},
                },
            ),
            binding("vap-namespaces"),
        ],
        [
            Request(
                "POST",
                "/api/v1/namespaces",
                {
                    "kind": "Namespace",
                    "apiVersion": "v1",
                    "metadata": {"name": "vap-ns-bad", "labels": {"case": "namespaces"}},
                },
            )
        ],
    ),
    Case(
        "vap-own-kind",
        [
            policy(
                "vap-own-kind",
                "false",
                cluster=True,
                constraints={
                    "resourceRules": [
                        rule(["*"], apiGroups=["admissionregistration.k8s.io"], apiVersions=["*"])
                    ],
                    "objectSelector": {"matchLabels": {"case": "own"}},
                },
            ),
            binding("vap-own-kind"),
        ],
        [
            Request(
                "POST",
                f"{REGISTRATION}/validatingadmissionpolicybindings",
                binding("vap-own-kind-b", policy_name="x")
                | {"metadata": {"name": "vap-own-kind-b", "labels": {"case": "own"}}},
            )
        ],
    ),
    denied(
        "vap-cost",
        "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, object.metadata.name != 'x'))))))",
    ),
    *(
        denied(
            f"vap-authorizer-{name}",
            expression,
            create()._replace(user="alice", groups=("system:authenticated",)),
            create("n")._replace(user="root", groups=("system:masters",)),
        )
        for name, expression in {
            "resource": "authorizer.group('').resource('configmaps').namespace('vap-authorizer-resource').check('delete').allowed()",
            "request": "authorizer.requestResource.check('custom').allowed()",
            "path": "authorizer.path('/healthz').check('get').allowed()",
            "account": "authorizer.serviceAccount('default', 'nobody').group('').resource('pods').check('create').allowed()",
            "named": "authorizer.group('resource.k8s.io').resource('resourceclaims').subresource('status').namespace('a').name('b').check('update').allowed()",
            "errored": "!authorizer.group('').resource('pods').check('create').errored() && authorizer.group('').resource('pods').check('create').error() == ''",
            "reason": "authorizer.group('').resource('pods').check('create').reason() == 'x'",
            "selectors": "authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').labelSelector('a=b').check('list').allowed()",
        }.items()
    ),
]
