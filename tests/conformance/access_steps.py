"""Requests about who may do what, for a real API server to be recorded and for ours to be compared.

    python -m tests.conformance.access_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them as an administrator who impersonates others, on a fresh kube-apiserver v1.38 with `--authorization-mode=Node,RBAC
--enable-admission-plugins=NodeRestriction --disable-admission-plugins=ServiceAccount` and all DRA feature gates on, beside a kube-controller-manager
with `--controllers=clusterrole-aggregation-controller`. `gzip -9n` of what it prints is `data/access-recorded.json.gz`.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlparse

from allot.apiserver.kinds.definition import PROXIES
from allot.apiserver.kinds.resources import RESOURCES, Resource

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
MERGE = "application/merge-patch+json"
Body = Mapping[str, Any]


class Who(NamedTuple):
    """A caller: an administrator who impersonates, an anonymous user, or a user with a wrong token."""

    user: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    uid: str = ""
    token: str | None = "admin"  # noqa: S105 - stands for the administrator's


class Step(NamedTuple):
    """One request."""

    label: str
    method: str
    path: str
    body: Body | None = None
    who: Who = Who()
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Seen(NamedTuple):
    """As much of an answer as is compared."""

    code: int
    text: str


def seen(step: Step, code: int, answer: Any) -> Seen:
    """The words of a refusal, the status of a review, nothing of what is only allowed."""
    if step.label.startswith("matrix"):
        refused = code in (401, 403)
        return Seen(code, _in_order(answer["message"])) if refused else Seen(200, "")
    if code >= 300:
        return Seen(code, _in_order(answer["message"]))
    if answer.get("kind", "").endswith("Review"):
        return Seen(code, json.dumps(_comparable(answer["status"]), sort_keys=True))
    return Seen(code, "")


def _in_order(text: str) -> str:
    """Roles that are missing are told in any order."""
    before, found, listed = text.partition("RBAC: [")
    names, end, after = listed.partition("]")
    return before + found + ", ".join(sorted(names.split(", "))) + end + after


def _comparable(status: dict[str, Any]) -> dict[str, Any]:
    """A status without what differs from run to run."""
    user = status.get("userInfo") or {}
    if user.get("username") == "admin":
        user.pop("uid", None)
    if "reason" in status:
        status["reason"] = _in_order(status["reason"])
    for rules in ("resourceRules", "nonResourceRules"):
        if rules in status:
            status[rules] = sorted(status[rules], key=json.dumps)
    return status


# --- the cluster it is about ---


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Body:
    lists = {
        "verbs": verbs.split(),
        "apiGroups": ["" if each == "core" else each for each in groups.split()],
        "resources": resources.split(),
    }
    return lists | ({"resourceNames": names.split()} if names else {})


def urls(verbs: str, paths: str) -> Body:
    return {"verbs": verbs.split(), "nonResourceURLs": paths.split()}


def user(name: str) -> Body:
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def account(namespace: str, name: str) -> Body:
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def a_role(place: str, name: str, *rules: Body, **rest: Any) -> Step:
    plural = "roles" if place else "clusterroles"
    home = f"/namespaces/{place}" if place else ""
    body = {"metadata": {"name": name}, "rules": list(rules), **rest}
    return Step(f"role {name}", "POST", f"{RBAC}{home}/{plural}", body)


def a_binding(place: str, name: str, kind: str, role: str, *subjects: Body) -> Step:
    plural = "rolebindings" if place else "clusterrolebindings"
    home = f"/namespaces/{place}" if place else ""
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    body = {"metadata": {"name": name}, "roleRef": ref, "subjects": list(subjects)}
    return Step(f"binding {name}", "POST", f"{RBAC}{home}/{plural}", body)


def create(path: str, name: str, **rest: Any) -> Step:
    return Step(f"create {path} {name}", "POST", path, {"metadata": {"name": name}, **rest})


def pod(name: str, node: str, **spec: Any) -> Body:
    containers = [{"name": "c", "image": "i"}]
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": containers, **spec},
    }


BUSY = pod(
    "p1",
    "n1",
    serviceAccountName="used",
    imagePullSecrets=[{"name": "pull"}],
    initContainers=[
        {
            "name": "i",
            "image": "x",
            "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "init", "key": "k"}}}],
        }
    ],
    containers=[
        {
            "name": "c",
            "image": "x",
            "envFrom": [{"secretRef": {"name": "envs"}}, {"configMapRef": {"name": "envs"}}],
        }
    ],
    volumes=[
        {"name": "v", "secret": {"secretName": "used"}},
        {"name": "w", "configMap": {"name": "used"}},
        {"name": "p", "persistentVolumeClaim": {"claimName": "used"}},
        {
            "name": "pr",
            "projected": {
                "sources": [{"secret": {"name": "proj"}}, {"configMap": {"name": "proj"}}]
            },
        },
    ],
    resourceClaims=[{"name": "r", "resourceClaimName": "used"}],
)


def slice_body(name: str, node: str | None) -> Body:
    where = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", **where, "pool": pool, "devices": [{"name": "x"}]}
    return {"metadata": {"name": name}, "spec": spec}


SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/a/pods"


def the_cluster() -> Iterator[Step]:
    for name in ("a", "b"):
        yield create("/api/v1/namespaces", name)
    for name in ("n1", "n2"):
        yield create("/api/v1/nodes", name)
    in_a = "/api/v1/namespaces/a"
    for name in ("used", "unused", "envs", "pull", "proj", "init"):
        yield create(f"{in_a}/secrets", name)
        yield create(f"{in_a}/configmaps", name)
    volume = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    asked = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}
    claims = "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims"
    for name in ("used", "unused"):
        yield create(f"{in_a}/persistentvolumeclaims", name, spec=volume)
        yield create(claims, name, spec={"devices": asked})
        yield create(f"{in_a}/serviceaccounts", name)
    yield Step("pod p1", "POST", PODS, BUSY)
    yield Step("pod p2", "POST", PODS, pod("p2", "n2"))
    for name, node in (("s1", "n1"), ("s2", "n2")):
        yield Step(f"slice {name}", "POST", SLICES, slice_body(name, node))
    yield a_role(
        "a",
        "make-roles",
        rule("create update patch get", "rbac.authorization.k8s.io", "roles rolebindings"),
        rule("get list", "core", "pods"),
    )
    yield a_binding("a", "make-roles", "Role", "make-roles", user("alice"))
    make = rule(
        "create update patch", "rbac.authorization.k8s.io", "clusterroles clusterrolebindings"
    )
    yield a_role("", "make-cluster-roles", make)
    yield a_binding("", "make-cluster-roles", "ClusterRole", "make-cluster-roles", user("carol"))
    yield a_binding("", "make-lost", "ClusterRole", "make-cluster-roles", user("lost-carol"))
    yield a_binding("", "lost-carol", "ClusterRole", "missing-role", user("lost-carol"))
    yield a_binding("", "lost", "ClusterRole", "missing-role", user("bob"))
    yield a_binding("a", "lost", "Role", "missing", user("bob"))
    yield a_binding("a", "lost2", "ClusterRole", "missing2", user("bob"))
    yield a_role(
        "",
        "escalate",
        make,
        rule("escalate", "rbac.authorization.k8s.io", "clusterroles", "granted"),
        rule("bind", "rbac.authorization.k8s.io", "clusterroles", "view"),
    )
    yield a_binding("", "escalate", "ClusterRole", "escalate", user("erin"))
    yield a_role(
        "",
        "impersonate",
        rule("impersonate", "core", "users groups", "dave devs"),
        rule("impersonate", "authentication.k8s.io", "userextras/scopes", "view"),
        rule("impersonate", "authentication.k8s.io", "uids", "u1"),
    )
    yield a_binding("", "impersonate", "ClusterRole", "impersonate", user("ivan"))
    yield a_role("a", "impersonate-accounts", rule("impersonate", "core", "serviceaccounts"))
    yield a_binding("a", "impersonate-accounts", "Role", "impersonate-accounts", user("ivan"))
    yield a_role(
        "",
        "wild",
        rule("get", "core apps", "*/status pods/log configmaps", ""),
        urls("get", "/metrics /x/*"),
    )
    yield a_binding("", "wild", "ClusterRole", "wild", user("wanda"))
    yield a_role("", "own-namespace", rule("get update", "core", "namespaces"))
    yield a_binding("a", "own-namespace", "ClusterRole", "own-namespace", user("nora"))
    # For the matrix.
    yield a_binding("b", "elsewhere", "ClusterRole", "edit", user("elsewhere"))
    yield a_binding("a", "reader", "ClusterRole", "view", user("reader"))
    yield a_binding("a", "editor", "ClusterRole", "edit", user("editor"))
    yield a_binding("a", "namespace-admin", "ClusterRole", "admin", user("namespace-admin"))
    yield a_binding("", "everything", "ClusterRole", "cluster-admin", user("everything"))
    yield a_role(
        "",
        "driver",
        rule("get list watch create update patch delete", "resource.k8s.io", "resourceslices"),
        rule("get", "resource.k8s.io", "resourceclaims"),
        rule("update patch", "resource.k8s.io", "resourceclaims/status"),
        rule("associated-node:update", "resource.k8s.io", "resourceclaims/driver", "d.example.com"),
    )
    yield a_binding("", "driver", "ClusterRole", "driver", account("a", "driver"))


# --- questions ---

ZOE, BOB, IVAN = Who("zoe"), Who("bob"), Who("ivan")
NODE = Who("system:node:n1", ("system:nodes",))
DRIVER = Who(
    "system:serviceaccount:a:driver",
    extra=(("authentication.kubernetes.io/node-name", "n1"),),
)
CALLERS = {
    "anonymous": Who(token=None),
    "wrong-token": Who(token="wrong"),  # noqa: S106 - wrong on purpose
    "no-role": ZOE,
    "elsewhere": Who("elsewhere"),
    "reader": Who("reader"),
    "editor": Who("editor"),
    "namespace-admin": Who("namespace-admin"),
    "everything": Who("everything"),
    "node": NODE,
    "driver": DRIVER,
}


def refused_requests() -> Iterator[Step]:
    asked = (
        ("GET", f"{PODS}/x"),
        ("GET", "/api/v1/pods"),
        ("GET", f"{PODS}/x/status"),
        ("POST", "/apis/apps/v1/namespaces/a/deployments"),
        ("GET", "/api/v1/nodes/x"),
        ("GET", "/metrics"),
        ("GET", "/nothing/here"),
        ("POST", "/version"),
        ("GET", "/apis/x.y/v1/namespaces/a/foos/b"),
        ("GET", "/api/v1/namespaces/a/foos/b/c/d"),
        ("GET", "/api/v1/namespaces/a"),
        ("GET", "/api/v1/namespaces/a/status"),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", f"{PODS}?watch=1"),
        ("GET", "/api/v1/watch/namespaces/a/pods"),
        ("DELETE", PODS),
        ("GET", f"{PODS}?fieldSelector=metadata.name%3Dfoo"),
        ("PUT", f"{PODS}/x"),
        ("PATCH", f"{PODS}/x"),
    )
    for name in ("zoe", "bob", "wanda", "nora", "alice"):
        for method, path in asked:
            yield Step(f"refused {name}", method, path, None if method == "GET" else {}, Who(name))
    for path in ("/healthz", "/livez", "/readyz", "/version", "/api", "/apis", "/openapi/v3", "/"):
        for caller in ("anonymous", "wrong-token"):
            yield Step(f"matrix path {caller}", "GET", path, None, CALLERS[caller])
        yield Step("matrix path zoe", "GET", path, None, ZOE)
    for path in ("/metrics", "/x/y", "/x/", "/x", "/metrics/"):
        yield Step("matrix path wanda", "GET", path, None, Who("wanda"))


SOME = rule("get list create", "core apps", "pods secrets")


def escalations() -> Iterator[Step]:
    roles, bindings = f"{RBAC}/namespaces/a/roles", f"{RBAC}/namespaces/a/rolebindings"
    alice, carol, erin = Who("alice"), Who("carol"), Who("erin")
    grouped = Who("carol", ("g1", "g2"), (("k", "v"),), "u1")

    def role(*rules: Body, **rest: Any) -> Body:
        return {"metadata": {"name": "x"}, "rules": list(rules), **rest}

    def binding(kind: str, name: str, own: str = "x") -> Body:
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        return {"metadata": {"name": own}, "roleRef": ref, "subjects": [user("x")]}

    def granted(name: str) -> Body:
        return {"metadata": {"name": name}, "rules": [SOME]}

    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    yield Step("role too much", "POST", roles, role(SOME), alice)
    yield Step("role owned", "POST", roles, role(rule("get", "core", "pods", "p")), alice)
    yield Step("role grows", "PUT", f"{roles}/x", role(SOME), alice)
    yield Step("role grows by patch", "PATCH", f"{roles}/x", {"rules": [SOME]}, alice, MERGE)
    labels = {"metadata": {"labels": {"a": "b"}}}
    yield Step("role labels", "PATCH", f"{roles}/x", labels, alice, MERGE)
    yield Step(
        "bind too much", "POST", bindings, binding("ClusterRole", "system:node-proxier"), alice
    )
    yield Step("bind missing", "POST", bindings, binding("Role", "nowhere"), alice)
    yield Step("bind owned", "POST", bindings, binding("Role", "x"), alice)
    cluster_roles, cluster_bindings = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
    paths = urls("get", "/a/* /b")
    yield Step("cluster role", "POST", cluster_roles, role(SOME, paths), carol)
    yield Step("names", "POST", cluster_roles, role(rule("get", "core", "pods", "n1 n2")), carol)
    aggregating = {"metadata": {"name": "x"}, "aggregationRule": aggregation}
    yield Step("aggregation", "POST", cluster_roles, aggregating, carol)
    yield Step(
        "cluster admin", "POST", cluster_bindings, binding("ClusterRole", "cluster-admin"), carol
    )
    yield Step("groups are told", "POST", cluster_roles, role(SOME), grouped)
    yield Step("missing roles are told", "POST", cluster_roles, role(SOME), Who("lost-carol"))
    yield Step("stars", "POST", cluster_roles, role(rule("*", "*", "*")), carol)
    yield Step("may escalate", "POST", cluster_roles, granted("granted"), erin)
    yield Step("may not escalate", "POST", cluster_roles, granted("other"), erin)
    yield Step("may bind", "POST", cluster_bindings, binding("ClusterRole", "view", "erin1"), erin)
    yield Step(
        "may not bind",
        "POST",
        cluster_bindings,
        binding("ClusterRole", "system:discovery", "erin2"),
        erin,
    )
    yield Step(
        "may not bind",
        "POST",
        cluster_bindings,
        binding("ClusterRole", "system:monitoring", "erin3"),
        erin,
    )


def impersonations() -> Iterator[Step]:
    """Whom an administrator may be taken for, and what others may do is asked of access reviews."""
    path = f"{AUTHENTICATION}/selfsubjectreviews"
    account_name = "system:serviceaccount:a:default"
    for who in (
        Who(),
        Who("dave"),
        Who("dave", ("devs",)),
        Who("dave", ("devs", "devs")),
        Who("dave", ("system:authenticated",)),
        Who("dave", ("system:unauthenticated",)),
        Who("dave", extra=(("scopes", "view"), ("scopes", "edit"), ("Example.com/Key", "v"))),
        Who("dave", uid="u1"),
        Who(account_name),
        Who(account_name, ("devs",)),
        Who("system:serviceaccount:a:b:c"),
        Who("system:anonymous"),
        Who("system:node:n1"),
        NODE,
        DRIVER,
        Who(token=None),
    ):
        yield Step("whoami", "POST", path, {}, who)
    for header, value in (("Group", "devs"), ("Uid", "u"), ("Extra-a", "u")):
        headers = ((f"Impersonate-{header}", value),)
        yield Step("no name", "POST", path, {}, headers=headers)
    for verb, resource, place, name, group in (
        ("impersonate", "users", "", "dave", ""),
        ("impersonate", "users", "", "eve", ""),
        ("impersonate", "groups", "", "devs", ""),
        ("impersonate", "serviceaccounts", "a", "default", ""),
        ("impersonate", "serviceaccounts", "b", "default", ""),
        ("impersonate", "uids", "", "u1", "authentication.k8s.io"),
        ("impersonate", "userextras/scopes", "", "view", "authentication.k8s.io"),
        ("impersonate", "userextras/scopes", "", "edit", "authentication.k8s.io"),
    ):
        yield may(IVAN, verb, resource, place, name, group)


def may(
    who: Who,
    verb: str,
    resource: str,
    namespace: str = "",
    name: str = "",
    group: str = "",
    **rest: Any,
) -> Step:
    """A SubjectAccessReview."""
    plural, _, part = resource.partition("/")
    asked = {
        "verb": verb,
        "resource": plural,
        "subresource": part,
        "namespace": namespace,
        "name": name,
        "group": group,
    }
    given = {key: value for key, value in asked.items() if value}
    groups = [*who.groups, "system:authenticated"]
    spec = {"user": who.user, "groups": groups, "resourceAttributes": {**given, **rest}}
    label = f"may {who.user} {verb} {resource} {namespace}/{name}"
    return Step(label, "POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec})


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def node_questions() -> Iterator[Step]:
    dra, storage = "resource.k8s.io", "storage.k8s.io"
    of_pods = (
        ("secrets", ""),
        ("configmaps", ""),
        ("persistentvolumeclaims", ""),
        ("resourceclaims", dra),
        ("serviceaccounts", ""),
        ("pods", ""),
    )
    for resource, group in of_pods:
        for name in ("used", "unused", "envs", "pull", "proj", "init", "p1", "p2", ""):
            for verb in VERBS:
                yield may(NODE, verb, resource, "a", name, group)
        for verb in ("get", "update", "patch"):
            yield may(NODE, verb, f"{resource}/status", "a", "used", group)
            yield may(NODE, verb, f"{resource}/status", "a", "unused", group)
        yield may(NODE, "get", resource, "", "used", group)
    for name in ("used", "unused", ""):
        yield may(NODE, "create", "serviceaccounts/token", "a", name)
        yield may(NODE, "get", "serviceaccounts/token", "a", name)
    for verb in VERBS:
        for name in ("n1", "n2", ""):
            yield may(NODE, verb, "leases", "kube-node-lease", name, "coordination.k8s.io")
            yield may(NODE, verb, "leases", "a", name, "coordination.k8s.io")
            yield may(NODE, verb, "csinodes", "", name, storage)
            yield may(NODE, verb, "nodes", "", name)
            yield may(NODE, verb, "nodes/status", "", name)
            yield may(NODE, verb, "pods/eviction", "a", name)
        for name in ("s1", "s2", ""):
            yield may(NODE, verb, "resourceslices", "", name, dra)
        for node in ("n1", "n2"):
            selector = {"rawSelector": f"spec.nodeName={node}"}
            yield may(NODE, verb, "resourceslices", "", "", dra, fieldSelector=selector)
            yield may(NODE, verb, "pods", "", "", fieldSelector=selector)
            one = {"key": "spec.nodeName", "operator": "In", "values": [node]}
            yield may(NODE, verb, "pods", "a", "", fieldSelector={"requirements": [one]})
        for resource, group in (("persistentvolumes", ""), ("volumeattachments", storage)):
            yield may(NODE, verb, resource, "", "x", group)
        for resource, group in (
            ("services", ""),
            ("runtimeclasses", "node.k8s.io"),
            ("events", ""),
            ("csidrivers", storage),
            ("tokenreviews", "authentication.k8s.io"),
            ("subjectaccessreviews", "authorization.k8s.io"),
            ("certificatesigningrequests", "certificates.k8s.io"),
            ("endpoints", ""),
            ("deployments", "apps"),
        ):
            yield may(NODE, verb, resource, "a", "", group)
    yield may(NODE, "get", "resourceslices/status", "", "s1", dra)
    for who in (
        Who("system:node:n1"),
        Who("system:node:", ("system:nodes",)),
        Who("foo", ("system:nodes",)),
    ):
        yield may(who, "get", "secrets", "a", "used")
        yield may(who, "get", "services", "a", "x")


def node_writes() -> Iterator[Step]:
    """What NodeRestriction says. Pods are mirror pods unless they are meant to be refused."""

    def patch(path: str, body: Body, who: Who = NODE) -> Step:
        return Step(f"node patches {path}", "PATCH", path, body, who, MERGE)

    def post(path: str, body: Body, who: Who = NODE) -> Step:
        return Step(f"node posts {path}", "POST", path, body, who)

    n1, n2 = "/api/v1/nodes/n1", "/api/v1/nodes/n2"
    yield post("/api/v1/nodes", {"metadata": {"name": "n3"}})
    yield patch(n2, {"metadata": {"labels": {"a": "b"}}})
    yield patch(f"{n2}/status", {"status": {"phase": "Running"}})
    for labels in (
        {"a": "b"},
        {"node-restriction.kubernetes.io/x": "b"},
        {"foo.kubernetes.io/x": "b", "k8s.io/y": "c"},
        {
            "kubernetes.io/hostname": "n1",
            "kubelet.kubernetes.io/x": "1",
            "node.kubernetes.io/z": "2",
        },
        {"topology.kubernetes.io/zone": "z", "kubernetes.io/os": "l", "example.com/x": "y"},
        {"a": None},
    ):
        yield patch(n1, {"metadata": {"labels": labels}})
    yield patch(n1, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
    yield patch(n1, {"metadata": {"ownerReferences": [owner]}})
    yield patch(n1, {"spec": {"unschedulable": True}})
    n4 = Who("system:node:n4", ("system:nodes",))
    restricted = {"node-restriction.kubernetes.io/x": "b"}
    yield post("/api/v1/nodes", {"metadata": {"name": "n4", "labels": restricted}}, n4)
    tainted = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
    yield post("/api/v1/nodes", {"metadata": {"name": "n4"}, "spec": tainted}, n4)
    yield Step("node deletes itself", "DELETE", "/api/v1/nodes/n4", None, n4)
    yield from _mirror_pods(post)
    for name in ("p2", "none"):
        yield Step("node deletes a pod", "DELETE", f"{PODS}/{name}", None, NODE)
    running = {"status": {"phase": "Running"}}
    yield patch(f"{PODS}/p2/status", running)
    yield patch(f"{PODS}/p1/status", running)
    yield patch(f"{PODS}/p1/status", {"metadata": {"labels": {"x": "y"}}})
    claim = {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "x"}]}
    yield patch(f"{PODS}/p1/status", {"status": claim})
    yield post(f"{PODS}/p2/eviction", {"metadata": {"name": "p2"}})
    yield post(f"{PODS}/p1/eviction?dryRun=All", {"metadata": {"name": "p1"}})
    leases = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    for place, name in (("kube-node-lease", "n2"), ("kube-node-lease", "n1"), ("a", "n1")):
        yield post(leases.format(place), {"metadata": {"name": name}})
    for name in ("n2", "n1"):
        path = "/apis/storage.k8s.io/v1/csinodes"
        yield post(path, {"metadata": {"name": name}, "spec": {"drivers": []}})
    for node in ("n2", None, "n1"):
        yield post(SLICES, slice_body("s3", node))
    yield Step("node slice", "PUT", f"{SLICES}/s2", slice_body("s2", "n2"), NODE)
    yield Step("node slice", "DELETE", f"{SLICES}/s3", None, NODE)
    yield Step("node slice", "DELETE", f"{SLICES}/s2", None, NODE)
    yield Step("matrix node slices", "GET", SLICES, None, NODE)
    yield Step(
        "matrix node slices", "GET", f"{SLICES}?fieldSelector=spec.nodeName%3Dn1", None, NODE
    )
    yield Step("matrix node slices", "DELETE", SLICES, None, NODE)
    volume = "/api/v1/namespaces/a/persistentvolumeclaims/used/status"
    yield patch(volume, {"status": {"capacity": {"storage": "1Gi"}}})
    yield from _tokens(post)


def _mirror_pods(post: Callable[[str, Body], Step]) -> Iterator[Step]:
    def mirror(node: str = "n1", **changes: Any) -> Body:
        made = dict(pod("m1", node, **changes.pop("spec", {})))
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": "zz", "controller": True}
        owner |= changes.pop("owner", {})
        metadata = {"name": "m1", "annotations": {"kubernetes.io/config.mirror": "x"}}
        made["metadata"] = metadata | {"ownerReferences": [owner]} | changes
        return made

    yield post(PODS, mirror(annotations={}))
    yield post(PODS, mirror("n2"))
    yield post(PODS, mirror(ownerReferences=[]))
    yield post(PODS, mirror(owner={"name": "n2"}))
    yield post(PODS, mirror(owner={"kind": "Foo"}))
    yield post(PODS, mirror(owner={"controller": False}))
    yield post(PODS, mirror(owner={"blockOwnerDeletion": True}))


def _tokens(post: Callable[[str, Body], Step]) -> Iterator[Step]:
    path = "/api/v1/namespaces/a/serviceaccounts/used/token"
    yield post(path, {"spec": {}})
    for kind, rest in (
        ("Secret", {"name": "used", "uid": "u"}),
        ("Pod", {"name": "p1"}),
        ("Pod", {"name": "p1", "uid": "u"}),
        ("Pod", {"name": "absent", "uid": "u"}),
    ):
        bound = {"kind": kind, "apiVersion": "v1", **rest}
        yield post(path, {"spec": {"boundObjectRef": bound}})


def reviews() -> Iterator[Step]:
    resource = {"verb": "get", "resource": "pods", "namespace": "a"}
    path = {"verb": "get", "path": "/metrics"}
    both = {"user": "alice", "resourceAttributes": resource, "nonResourceAttributes": path}
    selector = {"rawSelector": "a=b", "requirements": [{"key": "c", "operator": "Exists"}]}
    for spec in (
        {"user": "alice", "resourceAttributes": resource},
        {"user": "alice", "resourceAttributes": {**resource, "verb": "delete"}},
        {"user": "alice", "resourceAttributes": {**resource, "subresource": "status"}},
        {"user": "alice", "resourceAttributes": {**resource, "version": "v1", "name": "x"}},
        {"user": "alice", "resourceAttributes": {**resource, "fieldSelector": selector}},
        {"user": "alice", "resourceAttributes": {**resource, "fieldSelector": {}}},
        {"user": "x", "groups": ["system:masters"], "resourceAttributes": resource},
        {"user": "bob", "resourceAttributes": resource},
        {"user": "wanda", "nonResourceAttributes": path},
        {"user": "everything", "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}},
        {
            "user": "system:serviceaccount:a:driver",
            "resourceAttributes": {
                "verb": "get",
                "group": "resource.k8s.io",
                "resource": "resourceclaims",
            },
        },
        {"user": "x"},
        both,
        {"resourceAttributes": resource},
        {},
    ):
        yield Step("review", "POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec})
    local = f"{AUTHORIZATION}/namespaces/a/localsubjectaccessreviews"
    for spec in (
        {"user": "alice", "resourceAttributes": resource},
        {"user": "alice", "resourceAttributes": {**resource, "namespace": ""}},
        {"user": "alice", "resourceAttributes": {**resource, "namespace": "b"}},
        {"user": "alice", "nonResourceAttributes": path},
    ):
        yield Step("local review", "POST", local, {"spec": spec})
    own = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    for who in (Who("alice"), BOB, Who("everything"), Who(), Who(token=None)):
        yield Step("self review", "POST", own, {"spec": {"resourceAttributes": resource}}, who)
        yield Step("self review", "POST", own, {"spec": {"nonResourceAttributes": path}}, who)
        yield Step("self review", "POST", own, {"spec": {}}, who)
    rules = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    for who in (Who("alice"), ZOE, Who("everything"), Who(), NODE):
        yield Step("rules", "POST", rules, {"spec": {"namespace": "a"}}, who)
    yield Step("rules", "POST", rules, {"spec": {}}, ZOE)
    tokens = f"{AUTHENTICATION}/tokenreviews"
    for token in ({"token": "bad"}, {}):
        yield Step("token", "POST", tokens, {"spec": token})
    for method, place in (("GET", tokens), ("GET", f"{tokens}/x"), ("DELETE", own)):
        yield Step("reviews are created", method, place)


# --- the matrix ---


WITHOUT_PARTS = ("csinodes",)
"""Resources whose subresources are not recorded."""


def matrix() -> Iterator[Step]:
    """Every verb on every resource by every caller. Nothing is changed: the objects do not exist."""
    for resource in RESOURCES:
        if resource.plural == "resourcepoolstatusrequests":
            continue  # the KEP has it in another version
        version = resource.versions[0]
        for name, who in CALLERS.items():
            for method, path in _requests(resource, version):
                body: Body | None = None if method == "GET" else {}
                kind = MERGE if method == "PATCH" else "application/json"
                yield Step(f"matrix {name}", method, path, body, who, kind)


def _requests(resource: Resource, version: str) -> Iterator[tuple[str, str]]:
    base = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    places = [f"{base}/namespaces/a/{resource.plural}", f"{base}/namespaces/b/{resource.plural}"]
    if not resource.namespaced:
        places = [f"{base}/{resource.plural}"]
    for place in places:
        yield "POST", place
        if not resource.has_names:
            continue
        yield "GET", f"{place}?limit=1"
        yield "GET", f"{place}?watch=1&resourceVersion=x"
        yield "DELETE", f"{place}?labelSelector=none%3Dnone"
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            yield method, f"{place}/absent"
        for part in resource.subresources:
            if part in PROXIES:
                continue  # the real server forwards these, to what does not exist
            if resource.plural in WITHOUT_PARTS:
                continue
            for method, verb in (("GET", "get"), ("PUT", "update"), ("POST", "create")):
                if verb in part.verbs:
                    yield method, f"{place}/absent/{part.name}"
    if resource.namespaced and resource.is_stored:
        yield "GET", f"{base}/{resource.plural}?limit=1"


def all_steps() -> Iterator[Step]:
    yield from the_cluster()
    yield Step(SETTLE, "GET", "/api")
    for part in (refused_requests, escalations, impersonations, node_questions, reviews):
        yield from part()
    yield from node_writes()
    yield Step(SETTLE, "GET", "/api")
    yield from matrix()


SETTLE = "settle"
"""Where a server that learns of roles later than it answers needs a moment."""


# --- recording ---


def record(base: str, token: str, steps: Iterable[Step]) -> list[Seen]:
    url = urlparse(base)
    context = ssl._create_unverified_context()  # noqa: S323 - a server on this machine
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=context)
    answers = []
    for step in steps:
        if step.label == SETTLE:
            time.sleep(3)
        body = None if step.body is None else json.dumps(step.body).encode()
        connection.putrequest(step.method, step.path)
        for name, value in request_headers(step, token):
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        text = response.read()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {"message": text.decode(errors="replace")}
        answers.append(seen(step, response.status, answer))
    return answers


def request_headers(step: Step, token: str) -> Iterator[tuple[str, str]]:
    who = step.who
    if step.body is not None:
        yield "content-type", step.content_type
    if who.token is not None:
        yield "authorization", f"Bearer {token if who.token == Who().token else who.token}"
    if who.user:
        yield "impersonate-user", who.user
    for group in who.groups:
        yield "impersonate-group", group
    for key, value in who.extra:
        yield f"impersonate-extra-{quote(key, safe='').lower()}", value
    if who.uid:
        yield "impersonate-uid", who.uid
    yield from ((name.lower(), value) for name, value in step.headers)


if __name__ == "__main__":
    json.dump(record(sys.argv[1], sys.argv[2], all_steps()), sys.stdout)
