"""Patches with directives, with empty lists and nulls, and operations that do not fit.

    python -m tests.conformance.patch_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/patches-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import (
    ALL_DEVICES,
    APPLY,
    CLAIMS,
    JSON_PATCH,
    MERGE,
    NODES,
    SLICE,
    SLICES,
)
from tests.conformance.wire_steps import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    STRATEGIC,
    Step,
    each,
    print_answers,
    workload,
)

Document = dict[str, Any]
DELETED = "$deleteFromPrimitiveList/finalizers"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder"
LABELS = {"a": "b", "c": "d"}


def objects() -> Iterator[Step]:
    variables = [{"name": name, "value": name.lower()} for name in ("A", "B", "C")]
    ports = [{"containerPort": 80, "name": "h"}]
    deployment = workload("pd", env=variables, ports=ports, args=["x", "y"], command=["z"])
    deployment["metadata"] |= {"labels": LABELS, "finalizers": ["e.com/a", "e.com/b"]}
    spec = deployment["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "v", "emptyDir": {}}, {"name": "w", "secret": {"secretName": "s"}}]
    spec["tolerations"] = [{"key": "a", "operator": "Exists"}]
    service_ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    taint = {"key": "a", "effect": "NoSchedule"}
    bodies: tuple[tuple[str, Document], ...] = (
        (DEPLOYMENTS, deployment),
        (SERVICES, {"metadata": {"name": "ps"}, "spec": {"selector": LABELS, "ports": service_ports}}),
        (CLAIMS, {"metadata": {"name": "pc", "labels": {"a": "b"}}, "spec": ALL_DEVICES}),
        (SLICES, {"metadata": {"name": "pslice"}, "spec": SLICE["spec"]}),
        (NODES, {"metadata": {"name": "pn", "labels": {"a": "b"}}, "spec": {"taints": [taint]}}),
        (CONFIG_MAPS, {"metadata": {"name": "pm"}, "data": LABELS}),
    )  # fmt: skip
    for path, body in bodies:
        yield Step("POST", path, body)


# --- strategic merge patches ---


def deployments() -> Iterator[Step]:
    patches = (*_whole(), *map(_container, _containers()), *map(_template, _templates()))
    for patch in patches:
        yield Step("PATCH", f"{DEPLOYMENTS}/pd?dryRun=All", patch, STRATEGIC)


def _container(change: Document) -> Document:
    return _template({"containers": [{"name": "c"} | change]})


def _template(change: Document) -> Document:
    return {"spec": {"template": {"spec": change}}}


def _whole() -> tuple[Document, ...]:
    both = [f"e.com/{name}" for name in "bac"]
    return (
        *({"$patch": directive} for directive in ("replace", "delete", "merge", "foo", 5, None)),
        {"$retainKeys": ["spec"]}, {"$foo": "x"},
        *({"metadata": {"labels": labels}} for labels in (
            {"$patch": "replace", "x": "y"}, {"$patch": "delete"}, {"$patch": "foo"}, {"a": None}, {"$retainKeys": ["a"]})),
        *({"metadata": {"finalizers": finalizers}} for finalizers in (["e.com/c"], [], None)),
        *({"metadata": {DELETED: values}} for values in (["e.com/a"], ["e.com/z"], "x")),
        {"metadata": {"$deleteFromPrimitiveList/labels": ["a"]}}, {"metadata": {"$deleteFromPrimitiveList/foo": ["a"]}},
        {"metadata": {f"{ORDER}/finalizers": both[:2]}}, {"metadata": {f"{ORDER}/finalizers": both, "finalizers": ["e.com/c"]}},
        {"metadata": {f"{ORDER}/finalizers": both[:1], "finalizers": ["e.com/c"]}},
        *({"spec": spec} for spec in each(
            {"strategy": {"type": "Recreate"}}, {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}, {"strategy": None},
            {"strategy": {}}, {"strategy": {"rollingUpdate": None}}, None, {"template": None}, {"template": {"$patch": "delete"}},
            {"selector": None}, {"$patch": "replace", "replicas": 2}, {"replicas": None}, {"replicas": 0}, {"paused": False})),
    )  # fmt: skip


def _containers() -> tuple[Document, ...]:
    new = {"name": "Z", "value": "1"}
    lists: tuple[Any, ...] = (
        [{"$patch": "replace"}], [{"$patch": "replace"}, new], [{"$patch": "delete"}], [], None, [{}], [None], ["x"], "x", {},
        [{"value": "x"}], [{"name": "Q", "$patch": "delete"}],
        *([{"name": "A"} | change] for change in each(
            {"$patch": "delete"}, {"$patch": "replace", "value": "q"}, {"$patch": "merge", "value": "q"}, {"$patch": "foo"},
            {"value": None})),
    )  # fmt: skip
    return (
        *({"env": variables} for variables in lists),
        *({f"{ORDER}/env": order} for order in each(
            [{"name": "C"}, {"name": "A"}, {"name": "B"}], [{"name": "C"}], [], "x", [{"foo": "C"}], ["C"])),
        *({f"{ORDER}/env": order, "env": [new]} for order in each([{"name": "C"}, {"name": "Z"}], [{"name": "C"}])),
        *({"args": args} for args in each([], ["q"], None)), {"$deleteFromPrimitiveList/args": ["x"]},
        {"ports": [{"$patch": "replace"}, {"containerPort": 90}]}, {"$patch": "replace", "image": "k"}, {"$patch": "delete"},
        *({"$retainKeys": keys} for keys in each(["name", "image"], ["foo"], "x")), {"$retainKeys": ["image"], "image": "k"},
    )  # fmt: skip


def _templates() -> tuple[Document, ...]:
    host = {"name": "v", "hostPath": {"path": "/x"}}
    second = {"name": "c2", "image": "i"}
    return (
        *({"volumes": volumes} for volumes in each(
            [host | {"$retainKeys": ["name", "hostPath"]}], [host], [host | {"$retainKeys": ["name"]}],
            [{"name": "v", "$patch": "delete"}], [], None)),
        *({"tolerations": value} for value in each([], [{"key": "z", "operator": "Exists"}], None)),
        *({"containers": value} for value in each([], None, [{"image": "i"}], [second])),
        {f"{ORDER}/containers": [{"name": "c2"}, {"name": "c"}], "containers": [second]}, {"$retainKeys": ["containers"]},
        {"securityContext": {"$patch": "replace", "runAsUser": 5}}, {"securityContext": {"$patch": "delete"}},
        {"nodeSelector": {"a": "b"}},
    )  # fmt: skip


def without_before() -> Iterator[Step]:
    """Orders of lists that are replaced or not there, and directives for objects that are not there."""
    new = [{"name": "Y", "value": "1"}, {"name": "Z", "value": "1"}]
    patches: tuple[Document, ...] = (
        *({"metadata": {f"{ORDER}/{field}": ["a"]}} for field in ("labels", "foo")),
        *({"spec": {f"{ORDER}/{field}": []}} for field in ("strategy", "foo")), {f"{ORDER}/foo": []},
        *({"metadata": {f"{ORDER}/finalizers": order}} for order in each(None, 1, 1.5, True, "x", {})),
        *map(_container, each(
            {f"{ORDER}/args": ["y", "x"]}, {f"{ORDER}/args": ["y", "x"], "args": ["y"]}, {f"{ORDER}/foo": ["y"]},
            {f"{ORDER}/command": ["z"], "command": ["z", "w"]}, {f"{ORDER}/foo": [{"name": "y"}]},
            {f"{ORDER}/env": [{"name": "Z"}], "env": [{"$patch": "replace"}, new[1]]},
            {f"{ORDER}/env": [{"name": "Z"}, {"name": "Y"}], "env": [{"$patch": "replace"}, *new]},
            {f"{ORDER}/env": [{"name": "B"}, {"name": "C"}], "env": [{"name": "A", "$patch": "delete"}]})),
        *(_template({"nodeSelector": {"$patch": directive} | rest}) for directive in ("replace", "delete", "merge", "foo")
            for rest in ({}, {"a": "b"})),
        *map(_template, each(
            {"nodeSelector": {}}, {"affinity": {"$patch": "replace"}}, {"affinity": {"$patch": "replace", "nodeAffinity": {}}},
            {"dnsConfig": {"$patch": "replace", "nameservers": ["1.1.1.1"]}}, {"foo": {"$patch": "replace"}},
            {"foo": {"$patch": "delete"}}, {"initContainers": [{"$patch": "replace"}]},
            {"initContainers": [{"name": "x", "$patch": "delete"}]}, {"imagePullSecrets": [{"name": "x", "$patch": "delete"}]})),
    )  # fmt: skip
    for patch in patches:
        yield Step("PATCH", f"{DEPLOYMENTS}/pd?dryRun=All", patch, STRATEGIC)


def others() -> Iterator[Step]:
    for spec in each(
        {"ports": [{"$patch": "replace"}, {"port": 90}]}, {"ports": [{"port": 80, "$patch": "delete"}]}, {"ports": []},
        {"ports": None}, {"selector": {"$patch": "replace", "x": "y"}}, {"selector": {"a": None}}, {"selector": None},
        {f"{ORDER}/ports": [{"port": 81}, {"port": 80}]}, {"clusterIP": None}, {"type": None}, {"ports": [{"name": "x"}]},
    ):  # fmt: skip
        yield from _both(f"{SERVICES}/ps", {"spec": spec})
    for spec in each(
        {"taints": []}, {"taints": [{"$patch": "replace"}]}, {"taints": [{"key": "a", "$patch": "delete"}]}, {"taints": None},
        {"$patch": "delete"},
    ):  # fmt: skip
        yield from _both(f"{NODES}/pn", {"spec": spec})
    for path in (f"{CLAIMS}/pc", f"{SLICES}/pslice"):
        for patch in each(
            {"metadata": {"labels": {"$patch": "replace", "x": "y"}}}, {"metadata": {"labels": {"$patch": "delete"}}},
            {"metadata": {"labels": {"a": None}}}, {"metadata": {"labels": {}}}, {"metadata": {"finalizers": ["e.com/x"]}},
            {"metadata": {DELETED: ["e.com/x"]}}, {"$patch": "delete"}, {"$patch": "replace"}, {"$patch": "foo"},
            {"spec": {"$patch": "replace"}}, {"spec": {"devices": []}}, {"spec": {"devices": None}}, {"$retainKeys": ["metadata"]},
            {"metadata": {f"{ORDER}/ownerReferences": [{"uid": "x"}]}},
            {"metadata": {"ownerReferences": [{"uid": "x", "$patch": "delete"}]}},
        ):  # fmt: skip
            yield from _both(path, patch)


def _both(path: str, patch: Document) -> Iterator[Step]:
    for kind in (STRATEGIC, MERGE):
        yield Step("PATCH", f"{path}?dryRun=All", patch, kind)


# --- JSON patches and applied configurations ---


def operations() -> Iterator[Step]:
    some = {"op": "add", "path": "/metadata/finalizers", "value": ["e.com/x"]}
    for patch in each(
        [], [{}], [None], ["x"], [5], {}, [{"op": "foo", "path": "/data"}], [{"path": "/data"}], [{"op": "add"}],
        [{"op": 5, "path": "/data"}], [{"op": "add", "path": 5, "value": 1}], [{"op": "replace", "path": "", "value": {}}],
        *([{"op": "test", "path": "/data/a"} | change] for change in each(
            {"value": "b"}, {"value": "x"}, {"path": "/data/z", "value": None}, {"path": "/data/z", "value": "x"}, {},
            {"path": "/data", "value": {"c": "d", "a": "b"}})),
        *([{"op": "move", "path": "/data/z"} | change] for change in each(
            {"from": "/data/a"}, {"from": "/data/q"}, {}, {"from": "/data", "path": "/data/a"})),
        *([{"op": "copy", "path": "/data/z", "from": source}] for source in ("/data/a", "/data")),
        *([{"op": "remove", "path": path}] for path in ("/data", "/data/q", "", "/metadata/name")),
        *([{"op": "replace", "path": "/data/a"} | change] for change in each(
            {"path": "/data/q", "value": "x"}, {"value": None}, {}, {"path": "/metadata/name", "value": "other"})),
        *([{"op": "add", "path": "/data/q"} | change] for change in each(
            {}, {"value": None}, {"value": 5}, {"path": "/foo/bar", "value": 1}, {"path": "/data/q~1r", "value": "x"},
            {"path": "/metadata/finalizers", "value": []}, {"path": "/metadata/finalizers/-", "value": "e.com/x"})),
        *([some, {"op": "add", "path": f"/metadata/finalizers/{place}", "value": "e.com/y"}] for place in (0, 5)),
        *([some, {"op": "test", "path": f"/metadata/finalizers/{place}", "value": "e.com/x"}] for place in (0, 7)),
        [some, {"op": "remove", "path": "/metadata/finalizers/-"}],
    ):  # fmt: skip
        yield Step("PATCH", f"{CONFIG_MAPS}/pm?dryRun=All", patch, JSON_PATCH)


def beyond_the_standard() -> Iterator[Step]:
    """Where Kubernetes leaves RFC 6902."""
    place = "/metadata/finalizers"
    some = {"op": "add", "path": place, "value": ["e.com/x", "e.com/y"]}
    verbs = ("add", "replace", "remove", "test")
    for patch in each(
        *([{"op": "copy", "from": source, "path": "/data/z"}] for source in ("/data/q", "/foo/q", "", "data/a")),
        *([{"op": verb, "path": path, "value": "v"}] for verb in verbs for path in (
            "data", "data/a", "data/~2", "/data/~2", "/data/a~", "/data/~01", "/")),
        [{"op": "move", "from": "data/a", "path": "/data/z"}], [{"op": "move", "from": "/data/a", "path": "data/z"}],
        *([some, {"op": verb, "path": f"{place}/{index}", "value": "e.com/z"}] for verb in verbs for index in (
            -1, -2, -3, -4, "01", "x", "", "1.0", " 1", "+1", "1e0")),
        *([some, {"op": verb, "from": f"{place}/{first}", "path": f"{place}/{second}"}] for verb in ("move", "copy")
            for first, second in ((0, -1), (-1, 0), (-3, 0))),
        [{"op": "test", "path": "/data/q"}], [{"op": "test", "path": "/data/q/r", "value": None}],
        [{"op": "test", "path": "", "value": {}}], [{"op": "add", "path": "", "value": {"metadata": {"name": "pm"}}}],
        *([{"op": verb, "path": "/data/a/b", "value": "x"}] for verb in ("add", "replace", "remove")),
    ):  # fmt: skip
        yield Step("PATCH", f"{CONFIG_MAPS}/pm?dryRun=All", patch, JSON_PATCH)


def whole_documents() -> Iterator[Step]:
    """JSON patches that replace the document."""
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pm"}}
    root = {"op": "replace", "path": ""}
    values = each(
        None, [], "x", "", 5, 0, 1.5, True, False, [1], [{}], {}, {"apiVersion": "v1"}, {"apiVersion": 5}, {"apiVersion": "v1", "kind": []},
        ["x", None, 1],
    )  # fmt: skip
    for value in values:
        for path in (f"{CONFIG_MAPS}/pm", f"{CLAIMS}/pc", f"{NODES}/pn/status"):
            yield Step("PATCH", f"{path}?dryRun=All", [root | {"value": value}], JSON_PATCH)
    for patch in each(
        [root | {"value": None}, {"op": "add", "path": "/a", "value": 1}], [root | {"value": []}, {"op": "add", "path": "/0", "value": 1}],
        [root | {"value": "x"}, root | {"value": good}], [root | {"value": []}, root | {"value": good}],
        [root | {"value": None}, {"op": "test", "path": "", "value": None}], [root | {"value": []}, {"op": "test", "path": "", "value": []}],
        [root | {"value": []}, {"op": "add", "path": "/a", "value": 1}], [{"op": "add", "path": "", "value": []}],
    ):  # fmt: skip
        yield Step("PATCH", f"{CONFIG_MAPS}/pm?dryRun=All", patch, JSON_PATCH)


def absent_retained() -> Iterator[Step]:
    """`$retainKeys` in objects that the live object does not have."""
    for strict in ("", "&fieldValidation=Strict", "&fieldValidation=Ignore"):
        for template in each(
            {"affinity": {RETAIN: ["nodeAffinity"], "nodeAffinity": {}}}, {"affinity": {RETAIN: ["nodeAffinity"]}}, {"affinity": {RETAIN: "x"}},
            {"affinity": {RETAIN: ["nodeAffinity"], "podAffinity": {}}}, {"dnsConfig": {RETAIN: ["searches"], "options": []}},
            {"dnsConfig": {RETAIN: None}}, {"dnsConfig": {RETAIN: [5]}},
            {"securityContext": {RETAIN: ["runAsUser"], "runAsUser": 5}}, {"securityContext": {RETAIN: ["runAsUser"], "runAsGroup": 5}},
            {"affinity": {"nodeAffinity": {RETAIN: ["x"]}}}, {"affinity": {"nodeAffinity": {"$patch": "replace"}}},
            {"affinity": {"nodeAffinity": {"$patch": "delete"}, "podAffinity": {}}}, {"foo": {RETAIN: ["x"]}}, {"nodeSelector": {RETAIN: ["x"], "x": "y"}},
            {"initContainers": [{"name": "i", "image": "i", RETAIN: ["name"]}]},
            {"initContainers": [{"name": "i", "image": "i", "securityContext": {RETAIN: ["x"]}}]},
            {"containers": [{"name": "c", "securityContext": {RETAIN: ["runAsUser"], "runAsUser": 5}}]},
            {"containers": [{"name": "n", "image": "i", RETAIN: ["name"]}]}, {"containers": [{"name": "c", RETAIN: ["name", "image"]}]},
            {"containers": [{"name": "n", "image": "i", "securityContext": {RETAIN: ["x"]}}]},
            {"dnsConfig": {RETAIN: ["options"], "$setElementOrder/options": [], "options": []}},
            {"dnsConfig": {"$setElementOrder/options": [], "options": []}}, {"dnsConfig": {DELETED: ["x"], "searches": ["x"]}},
            {"dnsConfig": {"$deleteFromPrimitiveList/searches": ["x"], "searches": ["x"]}}, {"dnsConfig": {"$foo": 1}},
            {"dnsConfig": {f"{ORDER}/searches": ["x"], "searches": ["x"]}}, {"dnsConfig": {"options": [{"name": "x", RETAIN: ["y"]}]}},
        ):  # fmt: skip
            path = f"{DEPLOYMENTS}/pd?dryRun=All{strict}"
            yield Step("PATCH", path, _template(template), STRATEGIC)
    for path, patch in (
        (f"{SERVICES}/ps", {"spec": {"sessionAffinityConfig": {RETAIN: ["x"]}}}), (f"{NODES}/pn", {"spec": {"configSource": {RETAIN: ["x"]}}}),
        (f"{CLAIMS}/pc", {"metadata": {"annotations": {RETAIN: ["x"], "x": "y"}}}),
        (f"{CONFIG_MAPS}/pm", {"data": {RETAIN: ["x"], "x": "y"}}), (f"{CONFIG_MAPS}/pm", {"metadata": {"annotations": {RETAIN: ["x"]}}}),
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", patch, STRATEGIC)


def applied() -> Iterator[Step]:
    query = "?dryRun=All&fieldManager=m&force=true"
    for body in each(
        {}, {"data": {}}, {"data": None}, {"data": {"a": None}}, {"data": {"a": "x"}}, {"immutable": False}, {"binaryData": {}},
        *({"metadata": metadata} for metadata in each(
            {}, {"labels": {}}, {"finalizers": []}, {"finalizers": None}, {"ownerReferences": []}, {"ownerReferences": [{}]},
            {"name": ""}, {"name": "other"}, {"namespace": "other"}, {"resourceVersion": "1"}, {"managedFields": []},
            {"managedFields": [{}]})),
    ):  # fmt: skip
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        yield Step("PATCH", f"{CONFIG_MAPS}/pm{query}", kind | body, APPLY)
    templates: tuple[Document, ...] = (
        *({"containers": value} for value in each([], None, [{}])), {"volumes": []}, {"tolerations": []}, {"nodeSelector": {}},
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
        *({"containers": [{"name": "c"} | change]} for change in each(
            {"env": []}, {"env": [{"name": "A"}]}, {"env": [{"name": "A"}] * 2}, {"ports": [{"containerPort": 80}]}, {"ports": []})),
    )  # fmt: skip
    for spec in each(
        {}, {"strategy": {}}, {"strategy": {"type": "Recreate"}}, {"replicas": None}, {"replicas": 0}, {"paused": False},
        {"selector": {}}, *({"template": {"spec": template}} for template in templates),
    ):  # fmt: skip
        kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
        yield Step("PATCH", f"{DEPLOYMENTS}/pd{query}", kind | {"spec": spec}, APPLY)


def all_steps() -> list[Step]:
    parts = (
        objects, deployments, without_before, others, operations, beyond_the_standard, applied, whole_documents, absent_retained,
    )  # fmt: skip
    return [step for part in parts for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
