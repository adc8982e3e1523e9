"""CSINodes: what is said of their drivers, and which drivers an update may change.

    python -m tests.conformance.csi_node_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/csi-nodes-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import APPLY, JSON_PATCH, MERGE
from tests.conformance.wire_steps import STRATEGIC, Step, each, print_answers

Document = dict[str, Any]
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
DRIVER: Document = {"name": "d.example.com", "nodeID": "n"}
OTHER: Document = {"name": "e.example.com", "nodeID": "m"}


def node(drivers: Any, name: str = "c", **metadata: Any) -> Document:
    return {"metadata": {"name": name} | metadata, "spec": {"drivers": drivers}}


def new_nodes() -> Iterator[Step]:
    for drivers in (*_driver_lists(), *([DRIVER | change] for change in _changes())):
        yield Step("POST", f"{CSI_NODES}?dryRun=All", node(drivers))
    for rest in each(
        {}, {"spec": None}, {"spec": {}}, {"spec": []}, {"spec": {"drivers": {}}}, {"spec": {"drivers": "x"}}, {"spec": {"foo": 1}}, {"status": {}},
        {"status": {"drivers": []}}, {"spec": {"drivers": [DRIVER | {"foo": 1}]}},
    ):  # fmt: skip
        yield Step("POST", f"{CSI_NODES}?dryRun=All", {"metadata": {"name": "c"}} | rest)
    for name in ("a.b", "A", "a_b", "x" * 254, ""):
        yield Step("POST", f"{CSI_NODES}?dryRun=All", node([DRIVER], name))
    for metadata in each({"annotations": {"a": "b"}}, {"labels": {"a!": "b"}}, {"namespace": "x"}):
        yield Step("POST", f"{CSI_NODES}?dryRun=All", node([{}], **metadata))


def _driver_lists() -> tuple[Any, ...]:
    return each(
        None, [], [{}], [None], [{}, {}], [DRIVER, DRIVER], [DRIVER, OTHER], [DRIVER, DRIVER | {"nodeID": "x"}],
        [DRIVER, {}, DRIVER], [DRIVER, DRIVER, DRIVER], [{"name": "A"}, {"name": "a"}], [{"name": "D.example.com", "nodeID": "n"}, DRIVER],
    )  # fmt: skip


def _changes() -> Iterator[Document]:
    for name in each(
        None, "", "a", "A", "a_b", "a-", "-a", "a/b", ".", "a..b", "a" * 63, "a" * 64, ("a" * 31 + ".") * 2 + "b", "a.b" * 30, "é", 5, " a",
        "A_b" * 30,
    ):  # fmt: skip
        yield {"name": name}
    for node_id in each(
        None,
        "",
        " ",
        "x" * 128,
        "x" * 129,
        "x" * 192,
        "x" * 193,
        "x" * 256,
        "x" * 257,
        "é" * 96,
        "é" * 97,
        "é" * 128,
        "é" * 129,
        5,
    ):
        yield {"nodeID": node_id}
    for keys in each(
        None, [], [""], ["a"], ["a", "a"], ["a", "b", "a", "a"], ["a!"], ["a/b"], ["A/b"], ["a/b/c"], ["/a"], ["a/"], ["x" * 64], [None],
        [5], ["", ""], ["a!", "a!"], [f"k{index}" for index in range(100)], ["x" * 254 + "/a"], "a", {},
    ):  # fmt: skip
        yield {"topologyKeys": keys}
    for allocatable in each(
        None, {}, {"count": None}, {"count": 0}, {"count": 1}, {"count": -1}, {"count": 2**31}, {"count": "1"}, {"count": 1.5},
        {"foo": 1}, [], {"count": 2**31 - 1},
    ):  # fmt: skip
        yield {"allocatable": allocatable}
    yield {"name": "A_", "nodeID": "", "topologyKeys": ["", "a!"], "allocatable": {"count": -1}}
    yield {"nodeID": "", "topologyKeys": ["a", "a", "b!"], "allocatable": {"count": -2}}


def updates() -> Iterator[Step]:
    path = f"{CSI_NODES}/c"
    full = DRIVER | {"topologyKeys": ["a", "b"], "allocatable": {"count": 5}}
    bare = {"name": "bare.example.com", "nodeID": "b"}
    yield Step("POST", CSI_NODES, node([full, bare]))
    yield Step("GET", path)
    for drivers in (
        *_driver_lists(),
        *([full | change, bare] for change in _changed_drivers()),
        *([full, bare | change] for change in _changed_drivers()),
        *each(
            [bare, full],
            [full],
            [full, bare, OTHER],
            [full, bare, {}],
            [full, bare, bare],
            [full, full | {"nodeID": "x"}],
        ),
    ):
        yield Step("PATCH", f"{path}?dryRun=All", {"spec": {"drivers": drivers}}, MERGE)
        yield Step("PATCH", f"{path}?dryRun=All", {"spec": {"drivers": drivers}}, STRATEGIC)
        yield Step("PUT", f"{path}?dryRun=All", node(drivers, resourceVersion="<version c>"))
    yield Step("PUT", f"{path}?dryRun=All", node([full]))
    for patch in each(
        [{"op": "remove", "path": "/spec/drivers"}], [{"op": "remove", "path": "/spec/drivers/0"}],
        [{"op": "replace", "path": "/spec/drivers/0/allocatable/count", "value": 6}],
        [{"op": "add", "path": "/spec/drivers/-", "value": OTHER}], [{"op": "remove", "path": "/spec/drivers/0/allocatable"}],
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", patch, JSON_PATCH)
    for patch in each(
        {"drivers": [{"name": bare["name"], "$patch": "delete"}]}, {"drivers": [{"name": bare["name"], "allocatable": {"count": 1}}]},
        {"drivers": [{"name": full["name"], "allocatable": {"count": 0}}]}, {"drivers": [{"$patch": "replace"}]},
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", {"spec": patch}, STRATEGIC)
    for drivers in each(
        [],
        None,
        [DRIVER | {"allocatable": {"count": 7}}],
        [OTHER | {"topologyKeys": []}],
        [DRIVER, DRIVER],
    ):
        body = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": drivers}}
        yield Step("PATCH", f"{path}?dryRun=All&fieldManager=m&force=true", body, APPLY)
    yield Step("PATCH", path, {"spec": {"drivers": [full | {"allocatable": {"count": 9}}]}}, MERGE)
    yield Step("PATCH", path, {"spec": {"drivers": []}}, MERGE)
    yield Step("GET", path)
    yield Step("GET", CSI_NODES)
    yield Step("PATCH", f"{path}/status?dryRun=All", {"spec": {"drivers": [{}]}}, MERGE)
    yield Step("DELETE", path)


def _changed_drivers() -> tuple[Any, ...]:
    return each(
        {"nodeID": "other"}, {"nodeID": ""}, {"topologyKeys": []}, {"topologyKeys": None}, {"topologyKeys": ["b", "a"]},
        {"topologyKeys": ["a"]}, {"topologyKeys": ["a", "b", "c"]}, {"allocatable": None}, {"allocatable": {}},
        {"allocatable": {"count": 6}}, {"allocatable": {"count": 0}}, {"allocatable": {"count": -1}}, {"allocatable": {"count": 5}},
        {"nodeID": "other", "allocatable": {"count": 6}}, {"name": "renamed.example.com"}, {"name": "Bad_"},
        {"nodeID": "other", "topologyKeys": ["a", "a"]},
    )  # fmt: skip


def all_steps() -> list[Step]:
    return [step for part in (new_nodes, updates) for step in part()]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
