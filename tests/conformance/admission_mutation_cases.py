"""Mutating policies, and webhooks of both kinds, with requests that they are about."""

from __future__ import annotations

from typing import Any

from tests.conformance.admission_cases import (
    API_VERSION,
    MAPS,
    Body,
    Case,
    Request,
    apply_configuration,
    config_map,
    create,
    delete,
    json_patch,
    mutating,
    mutating_binding,
    rule,
    update,
    within,
)

POD = "/api/v1/namespaces/{ns}/pods"


def pod(name: str = "p", **changes: Any) -> Request:
    spec = {"containers": [{"name": "c", "image": "i"}]} | changes
    return Request(
        "POST", POD, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}
    )


def claim(name: str = "c", version: str = "v1") -> Request:
    wanted: Body = {"deviceClassName": "gpu"}
    request = {"name": "r"} | (wanted if version == "v1beta1" else {"exactly": wanted})
    return Request(
        "POST",
        f"/apis/resource.k8s.io/{version}/namespaces/{{ns}}/resourceclaims",
        {
            "kind": "ResourceClaim",
            "apiVersion": f"resource.k8s.io/{version}",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [request]}},
        },
    )


def mutated(name: str, mutation: Body, *requests: Request, **spec: Any) -> Case:
    return Case(
        name,
        [mutating(name, mutation, **spec), mutating_binding(name)],
        requests or [create(a="1")],
    )


PODS = {"constraints": {"resourceRules": [rule(["pods"], operations=["CREATE"])]}}
CLAIMS = {
    "constraints": {
        "resourceRules": [
            rule(["resourceclaims"], apiGroups=["resource.k8s.io"], operations=["CREATE"])
        ]
    }
}

MUTATIONS = [
    mutated(
        "map-add",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: object.metadata.name + '!'}]"),
    ),
    mutated(
        "map-several",
        json_patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'x': 'y'}}, JSONPatch{op: 'remove', path: '/data/a'}, JSONPatch{op: 'add', path: '/data/c', value: 'd'}]"
        ),
    ),
    mutated(
        "map-escape",
        json_patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/x~y'), value: 'z'}]"
        ),
    ),
    mutated(
        "map-escape-ok",
        json_patch(
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/x'), value: 'z'}]"
        ),
    ),
    mutated(
        "map-test-fails",
        json_patch(
            "[JSONPatch{op: 'test', path: '/data/a', value: 'other'}, JSONPatch{op: 'replace', path: '/data/a', value: 'changed'}]"
        ),
    ),
    mutated(
        "map-test-holds",
        json_patch(
            "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, JSONPatch{op: 'replace', path: '/data/a', value: 'changed'}]"
        ),
    ),
    mutated(
        "map-move-copy",
        json_patch(
            "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}, JSONPatch{op: 'move', from: '/data/a', path: '/data/c'}]"
        ),
    ),
    mutated("map-no-such-path", json_patch("[JSONPatch{op: 'remove', path: '/data/nothing'}]")),
    mutated("map-bad-op", json_patch("[JSONPatch{op: 'merge', path: '/data/a', value: 'x'}]")),
    mutated("map-bad-type", json_patch("[JSONPatch{op: 'add', path: '/data/b', value: 3}]")),
    mutated(
        "map-invalid-result",
        json_patch("[JSONPatch{op: 'add', path: '/data/bad key', value: 'x'}]"),
    ),
    mutated(
        "map-unknown-field", json_patch("[JSONPatch{op: 'add', path: '/nothing', value: 'x'}]")
    ),
    mutated(
        "map-fails",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: object.data.nothing}]"),
    ),
    mutated(
        "map-fails-ignored",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: object.data.nothing}]"),
        failurePolicy="Ignore",
    ),
    mutated(
        "map-conditional",
        json_patch(
            "object.metadata.name == 'm' ? [JSONPatch{op: 'add', path: '/data/b', value: 'x'}] : []"
        ),
        create(a="1"),
        create("n", a="1"),
    ),
    mutated(
        "map-object-value",
        json_patch(
            "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{key: 'k', operator: 'Exists'}}]"
        ),
        pod(tolerations=[{"key": "x", "operator": "Exists"}]),
        **PODS,
    ),
    mutated(
        "map-apply",
        apply_configuration(
            "Object{metadata: Object.metadata{labels: {'added': 'yes'}}, data: {'b': '2'}}"
        ),
    ),
    mutated(
        "map-apply-pod",
        apply_configuration(
            "Object{spec: Object.spec{terminationGracePeriodSeconds: 7, initContainers: [Object.spec.initContainers{name: 'first', image: 'init'}]}}"
        ),
        pod(),
        **PODS,
    ),
    mutated(
        "map-apply-merge",
        apply_configuration(
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: 'X', value: c.image}]})}}"
        ),
        pod(
            containers=[
                {"name": "c", "image": "i", "env": [{"name": "Y", "value": "1"}]},
                {"name": "d", "image": "j"},
            ]
        ),
        **PODS,
    ),
    mutated(
        "map-apply-atomic",
        apply_configuration(
            "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'k'}]}}"
        ),
        pod(),
        **PODS,
    ),
    mutated(
        "map-apply-unknown",
        apply_configuration("Object{spec: Object.spec{nothing: 'x'}}"),
        pod(),
        **PODS,
    ),
    mutated(
        "map-apply-mismatch",
        apply_configuration("Object{spec: Object.metadata{name: 'x'}}"),
        pod(),
        **PODS,
    ),
    mutated(
        "map-apply-bad-type",
        apply_configuration("Object{spec: Object.spec{terminationGracePeriodSeconds: 'x'}}"),
        pod(),
        **PODS,
    ),
    mutated(
        "map-apply-claim",
        apply_configuration("Object{metadata: Object.metadata{annotations: {'team': 'blue'}}}"),
        claim(),
        claim("d", "v1beta1"),
        **CLAIMS,
    ),
    mutated(
        "map-claim-version",
        json_patch(
            "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'seen': object.apiVersion + ' ' + request.requestKind.version}}]"
        ),
        claim(),
        claim("d", "v1beta1"),
        **CLAIMS,
    ),
    mutated(
        "map-update",
        json_patch(
            "[JSONPatch{op: 'add', path: '/data/old', value: oldObject == null ? 'none' : oldObject.data.a}]"
        ),
        create(a="1"),
        update(a="2"),
    ),
    mutated(
        "map-delete",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: 'x'}]"),
        create(a="1"),
        delete(),
    ),
    mutated(
        "map-variables",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: variables.shout}]"),
        variables=[{"name": "shout", "expression": "object.metadata.name.upperAscii()"}],
    ),
    mutated(
        "map-condition",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: 'x'}]"),
        create(a="1"),
        create("skip", a="1"),
        matchConditions=[{"name": "c", "expression": "object.metadata.name != 'skip'"}],
    ),
    mutated(
        "map-condition-fails",
        json_patch("[JSONPatch{op: 'add', path: '/data/b', value: 'x'}]"),
        matchConditions=[{"name": "c", "expression": "object.data.nothing == 'x'"}],
    ),
    Case(
        "map-params",
        [
            mutating(
                "map-params",
                json_patch("[JSONPatch{op: 'add', path: '/data/b', value: params.data.value}]"),
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
                matchConditions=[{"name": "n", "expression": "object.metadata.name != 'p'"}],
            ),
            mutating_binding(
                "map-params", paramRef={"name": "p", "parameterNotFoundAction": "Deny"}
            ),
        ],
        [create(a="1")],
        [Request("POST", MAPS, config_map("p", value="from p"))],
    ),
    Case(
        "map-params-missing",
        [
            mutating(
                "map-params-missing",
                json_patch("[JSONPatch{op: 'test', path: '/data/a', value: '1'}]"),
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            ),
            mutating_binding(
                "map-params-missing", paramRef={"name": "p", "parameterNotFoundAction": "Deny"}
            ),
        ],
        [create(a="1")],
    ),
    Case(
        "map-mutations-in-order",
        [
            mutating(
                "map-mutations-in-order",
                json_patch("[JSONPatch{op: 'add', path: '/data/b', value: 'first'}]"),
                json_patch(
                    "[JSONPatch{op: 'add', path: '/data/c', value: object.data.b + ' seen'}]"
                ),
            ),
            mutating_binding("map-mutations-in-order"),
        ],
        [create(a="1")],
    ),
    Case(
        "map-reinvoked",
        [
            mutating(
                "map-reinvoked-1",
                json_patch(
                    "[JSONPatch{op: 'add', path: '/data/count', value: (has(object.data.count) ? object.data.count : '') + 'a'}]"
                ),
                reinvocationPolicy="IfNeeded",
                constraints={"namespaceSelector": within("map-reinvoked")},
            ),
            mutating_binding("map-reinvoked-1"),
            mutating(
                "map-reinvoked-2",
                json_patch(
                    "[JSONPatch{op: 'add', path: '/data/count', value: (has(object.data.count) ? object.data.count : '') + 'b'}]"
                ),
                reinvocationPolicy="Never",
                constraints={"namespaceSelector": within("map-reinvoked")},
            ),
            mutating_binding("map-reinvoked-2"),
        ],
        [create(a="1")],
    ),
    Case(
        "map-authorizer",
        [
            mutating(
                "map-authorizer",
                json_patch(
                    "[JSONPatch{op: 'add', path: '/data/may', value: string(authorizer.requestResource.check('delete').allowed())}]"
                ),
            ),
            mutating_binding("map-authorizer"),
        ],
        [
            create(a="1"),
            create("n", a="1")._replace(user="alice", groups=("system:authenticated",)),
        ],
    ),
]

# --- webhooks ---


def webhook(kind: str, name: str, path: str, /, **changes: Any) -> Body:
    """A configuration with one webhook. `URL` and `CA` are filled in by the player."""
    hook: Body = {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"URL{path}", "caBundle": "CA"},
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": within(name),
        "timeoutSeconds": 2,
    } | changes
    return {
        "kind": f"{kind}WebhookConfiguration",
        "apiVersion": API_VERSION,
        "metadata": {"name": name},
        "webhooks": [hook],
    }


def validated(name: str, path: str, *requests: Request, **changes: Any) -> Case:
    return Case(name, [webhook("Validating", name, path, **changes)], requests or [create(a="1")])


def patched(name: str, path: str, *requests: Request, **changes: Any) -> Case:
    return Case(name, [webhook("Mutating", name, path, **changes)], requests or [create(a="1")])


DRY = Request("POST", MAPS + "?dryRun=All", config_map("dry", a="1"))
BAD_ANSWERS = (
    "not-json",
    "empty",
    "wrong-kind",
    "wrong-uid",
    "no-response",
    "error-500",
    "error-404",
    "status-error",
    "null-response",
    "not-review-version",
)

REVIEWED = {"verb": "get", "resource": "pods"}
ACCESS, WHO = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
LOCAL_REVIEW = Request(
    "POST",
    ACCESS + "/namespaces/{ns}/localsubjectaccessreviews",
    {"spec": {"user": "u", "resourceAttributes": {**REVIEWED, "namespace": "{ns}"}}},
)
REVIEWS = [
    Request(
        "POST", f"{ACCESS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": REVIEWED}}
    ),
    Request(
        "POST",
        f"{ACCESS}/subjectaccessreviews",
        {"spec": {"user": "u", "resourceAttributes": REVIEWED}},
    ),
    Request("POST", f"{WHO}/tokenreviews", {"spec": {"token": "t"}}),
    Request("POST", f"{WHO}/tokenreviews?dryRun=All", {"spec": {"token": "t"}}),
]
REVIEW_KINDS = rule(
    ["selfsubjectaccessreviews", "subjectaccessreviews", "tokenreviews", "selfsubjectreviews"],
    apiGroups=["authorization.k8s.io", "authentication.k8s.io"],
)
LOCAL_REVIEWS = [rule(["localsubjectaccessreviews"], apiGroups=["authorization.k8s.io"])]

WEBHOOKS = [
    validated("vwh-reviews", "/review", *REVIEWS, rules=[REVIEW_KINDS], namespaceSelector={}),
    validated("vwh-local-review", "/review", LOCAL_REVIEW, rules=LOCAL_REVIEWS),
    validated("vwh-local-denied", "/deny-message", LOCAL_REVIEW, rules=LOCAL_REVIEWS),
    validated("vwh-local-warned", "/warnings", LOCAL_REVIEW, rules=LOCAL_REVIEWS),
    patched("mwh-local-label", "/patch-label", LOCAL_REVIEW, rules=LOCAL_REVIEWS),
    validated(
        "vwh-bindings",
        "/review",
        pod(),
        Request(
            "POST",
            "/api/v1/namespaces/{ns}/bindings",
            {"metadata": {"name": "p"}, "target": {"name": "n"}},
        ),
        rules=[rule(["bindings"], apiGroups=[""])],
    ),
    validated("vwh-allow", "/allow"),
    validated("vwh-deny", "/deny"),
    validated("vwh-deny-message", "/deny-message"),
    validated("vwh-deny-code", "/deny-code"),
    validated("vwh-deny-reason", "/deny-reason"),
    validated("vwh-deny-details", "/deny-details"),
    validated("vwh-deny-success", "/deny-success"),
    validated("vwh-warnings", "/warnings"),
    validated("vwh-annotations", "/annotations"),
    validated("vwh-patch", "/patch"),
    validated("vwh-review", "/review", create(a="1"), update(a="2"), delete(), DRY),
    validated(
        "vwh-review-user",
        "/review",
        create(a="1")._replace(
            user="alice", groups=("devs", "system:masters"), extra=(("example.com/team", "blue"),)
        ),
    ),
    validated(
        "vwh-review-v1beta1",
        "/review",
        claim(),
        rules=[rule(["resourceclaims"], apiGroups=["resource.k8s.io"], apiVersions=["v1beta1"])],
    ),
    validated(
        "vwh-review-old-version",
        "/review-v1beta1",
        create(a="1"),
        admissionReviewVersions=["v1beta1"],
    ),
    validated(
        "vwh-unknown-version-first", "/review", create(a="1"), admissionReviewVersions=["v7", "v1"]
    ),
    validated(
        "vwh-status",
        "/review",
        claim(),
        Request(
            "PATCH",
            "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims/c/status",
            {"metadata": {"labels": {"a": "b"}}},
            content_type="application/merge-patch+json",
        ),
        rules=[rule(["resourceclaims/status"], apiGroups=["resource.k8s.io"])],
    ),
    *(validated(f"vwh-bad-{bad}", f"/{bad}") for bad in BAD_ANSWERS),
    validated("vwh-bad-ignored", "/not-json", failurePolicy="Ignore"),
    validated("vwh-hang", "/hang", timeoutSeconds=1),
    validated("vwh-hang-ignored", "/hang", timeoutSeconds=1, failurePolicy="Ignore"),
    validated(
        "vwh-refused", "/allow", clientConfig={"url": "https://127.0.0.1:1/x", "caBundle": "CA"}
    ),
    validated(
        "vwh-refused-ignored",
        "/allow",
        clientConfig={"url": "https://127.0.0.1:1/x"},
        failurePolicy="Ignore",
    ),
    validated("vwh-untrusted", "/allow", clientConfig={"url": "URL/allow"}),
    validated(
        "vwh-no-service",
        "/allow",
        clientConfig={"service": {"name": "nothing", "namespace": "default"}},
    ),
    validated(
        "vwh-conditions",
        "/deny",
        create(),
        create("skip"),
        matchConditions=[{"name": "c", "expression": "object.metadata.name != 'skip'"}],
    ),
    validated(
        "vwh-condition-fails",
        "/allow",
        matchConditions=[{"name": "c", "expression": "object.data.nothing == 'x'"}],
    ),
    validated(
        "vwh-condition-fails-ignored",
        "/deny",
        matchConditions=[{"name": "c", "expression": "object.data.nothing == 'x'"}],
        failurePolicy="Ignore",
    ),
    validated(
        "vwh-condition-fails-other-false",
        "/deny",
        matchConditions=[
            {"name": "c", "expression": "object.data.nothing == 'x'"},
            {"name": "d", "expression": "false"},
        ],
    ),
    validated(
        "vwh-object-selector",
        "/deny",
        create(),
        Request("POST", MAPS, config_map("x", labels={"app": "x"})),
        objectSelector={"matchLabels": {"app": "x"}},
    ),
    validated("vwh-dry-run", "/allow", DRY, sideEffects="NoneOnDryRun"),
    Case(
        "vwh-two",
        [
            webhook("Validating", "vwh-two", "/deny-message"),
            webhook("Validating", "vwh-two-b", "/warnings", namespaceSelector=within("vwh-two")),
        ],
        [create()],
    ),
    patched("mwh-allow", "/allow"),
    patched("mwh-patch", "/patch"),
    patched(
        "mwh-patch-claim",
        "/patch-label",
        claim(),
        claim("d", "v1beta1"),
        rules=[rule(["resourceclaims"], apiGroups=["resource.k8s.io"])],
    ),
    patched("mwh-deny", "/deny-message"),
    patched("mwh-patch-no-type", "/patch-no-type"),
    patched("mwh-patch-bad-type", "/patch-bad-type"),
    patched("mwh-patch-not-json", "/patch-not-json"),
    patched("mwh-patch-fails", "/patch-fails"),
    patched("mwh-patch-invalid", "/patch-invalid"),
    patched("mwh-patch-not-object", "/patch-not-object"),
    patched(
        "mwh-patch-delete",
        "/patch",
        create(a="1")._replace(method="POST"),
        delete(),
        rules=[rule(operations=["DELETE"])],
    ),
    patched("mwh-patch-v1beta1", "/patch-v1beta1", admissionReviewVersions=["v1beta1"]),
    patched("mwh-patch-on-deny", "/patch-on-deny"),
    patched("mwh-hang", "/hang", timeoutSeconds=1),
    patched("mwh-hang-ignored", "/hang", timeoutSeconds=1, failurePolicy="Ignore"),
    patched("mwh-review", "/review", create(a="1"), update(a="2"), delete()),
    Case(
        "mwh-reinvoked",
        [
            webhook(
                "Mutating",
                "mwh-reinvoked-1",
                "/count-a",
                namespaceSelector=within("mwh-reinvoked"),
                reinvocationPolicy="IfNeeded",
            ),
            webhook(
                "Mutating", "mwh-reinvoked-2", "/count-b", namespaceSelector=within("mwh-reinvoked")
            ),
        ],
        [create(count="0")],
    ),
    Case(
        "mwh-never-again",
        [
            webhook(
                "Mutating",
                "mwh-never-again-1",
                "/count-a",
                namespaceSelector=within("mwh-never-again"),
            ),
            webhook(
                "Mutating",
                "mwh-never-again-2",
                "/count-b",
                namespaceSelector=within("mwh-never-again"),
            ),
        ],
        [create(count="0")],
    ),
    Case(
        "mwh-and-policy",
        [
            webhook("Mutating", "mwh-and-policy", "/count-b"),
            mutating(
                "mwh-and-policy",
                json_patch(
                    "[JSONPatch{op: 'replace', path: '/data/count', value: object.data.count + 'p'}]"
                ),
                reinvocationPolicy="IfNeeded",
            ),
            mutating_binding("mwh-and-policy"),
        ],
        [create(count="0")],
    ),
]
