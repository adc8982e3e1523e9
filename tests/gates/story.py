"""The stage of all stories about feature gates: one cluster whose components are restarted with other gates.

A story creates a pod that runs, one that waits and one that is pending, switches the gate of a KEP off and on, for all
components or for some of them, and looks after each step at what is stored and who holds which device.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import Flag, auto
from pathlib import Path
from typing import Any, Final

import pytest

from allot.api.quantity import Quantity
from allot.api.raw import RawObject
from allot.client.apply import RefusedError
from allot.client.resources import Resource, raw_resource
from allot.rules import RuleSet
from allot.testing.cluster import (
    AllotCluster,
    ClusterSettings,
    RealTimeCluster,
    VirtualTimeCluster,
)
from tests.contract.conftest import NO_ETCD
from tests.contract.etcd_server import EtcdServer, find_etcd
from tests.gates.rolling import RollingCluster

NODE: Final = "n1"
CLASS: Final = "device"
DRIVER: Final = "gates.example.com"
SECONDS: Final = 120.0
"""How long to wait for anything, at most."""
POLL_SECONDS: Final = 0.05

Json = dict[str, Any]

RESOURCES: Final[Mapping[str, Resource[RawObject]]] = {
    kind: raw_resource(
        RawObject, "resource.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=namespaced
    )
    for kind, namespaced in (
        ("ResourceSlice", False),
        ("ResourceClaim", True),
        ("ResourceClaimTemplate", True),
    )
}


class Off(Flag):
    """The components that have the gate off."""

    NOTHING = 0
    SERVER = auto()
    SCHEDULER = auto()
    CONTROLLERS = auto()
    ALL = SERVER | SCHEDULER | CONTROLLERS


SKEWS: Final = tuple(Off(bits) for bits in range(1, Off.ALL.value))
"""Every way in which some components, and not all, have the gate off."""


def name_of(off: Off) -> str:
    """For ids of tests."""
    return "+".join(part.name.lower() for part in off if part.name) + "-off"


class Story:
    """A cluster with one node, and what stories do with it."""

    def __init__(self, cluster: AllotCluster, gate: str, *siblings: str) -> None:
        """`siblings` are gates that have to be switched together with `gate`."""
        self.cluster = cluster
        self._gates = (gate, *siblings)
        self.off = Off.NOTHING
        self._allocations: dict[str, Any] = {}
        """What pods hold that have a node, by claim: it must not change."""
        cluster.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
            dra("DeviceClass", CLASS, {}),
        )

    def switch(self, off: Off) -> None:
        """All components start again on what is stored; those have the gate off."""
        self.audit()
        own = {
            part: dict.fromkeys(self._gates, part not in off)
            for part in (Off.SERVER, Off.SCHEDULER, Off.CONTROLLERS)
        }
        self.off = off
        self.cluster.restart(
            replace(
                self.cluster.settings,
                feature_gates=own[Off.SERVER],
                scheduler_gates=own[Off.SCHEDULER],
                controller_gates=own[Off.CONTROLLERS],
            )
        )
        self.audit()

    # --- objects ---

    def publish(self, pool: str, *devices: Json) -> Json:
        """A slice of the node with these devices; what is stored of it."""
        spec = {
            "driver": DRIVER,
            "nodeName": NODE,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
        }
        (created,) = self.cluster.apply(dra("ResourceSlice", pool, spec))
        return created

    def claim(self, name: str, *requests: Json, constraints: tuple[Json, ...] = ()) -> Json:
        devices = {"requests": list(requests), "constraints": list(constraints)}
        (created,) = self.cluster.apply(dra("ResourceClaim", name, {"devices": devices}))
        return created

    def template(self, name: str, *requests: Json, constraints: tuple[Json, ...] = ()) -> Json:
        devices = {"requests": list(requests), "constraints": list(constraints)}
        spec = {"spec": {"devices": devices}}
        (created,) = self.cluster.apply(dra("ResourceClaimTemplate", name, spec))
        return created

    def pod(self, name: str, claim: str = "", *, template: str = "") -> None:
        entry = {"name": "c", "resourceClaimTemplateName": template}
        if not template:
            entry = {"name": "c", "resourceClaimName": claim or name}
        container = {"name": "m", "image": "i", "resources": {"claims": [{"name": "c"}]}}
        spec = {"containers": [container], "resourceClaims": [entry]}
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec,
            }
        )

    def stored(self, kind: str, name: str) -> Json:
        found = self.cluster.get(kind, name)
        assert found is not None, f"no {kind} {name}"
        return found

    def touch(self, kind: str, name: str) -> Json:
        """Update a label, as any client may: all that is stored stays. Returns it."""
        found = self.stored(kind, name)
        labels = {**found["metadata"].get("labels", {}), "off": str(self.off.value)}
        changed = {**found, "metadata": {**found["metadata"], "labels": labels}}
        updated = self.cluster.run(
            self.cluster.client.update(RESOURCES[kind], RawObject(changed))
        ).data
        assert updated["metadata"]["labels"] == labels
        assert updated["spec"] == found["spec"]
        assert updated.get("status") == found.get("status")
        return dict(updated)

    # --- what happens to them ---

    def runs(self, pod: str) -> None:
        """Wait until a pod runs."""
        self.cluster.wait_for_phase(pod, "Running", seconds=SECONDS)
        self.audit()

    def is_pending(self, pod: str, *reasons: str) -> None:
        """Wait until the condition of a pod has all of these words. It has no node then."""

        def says_so(found: Json | None) -> bool:
            message = condition_of(found).get("message", "")
            return all(reason in message for reason in reasons)

        found = self.cluster.wait_for("Pod", pod, says_so, seconds=SECONDS)
        assert found is not None
        assert "nodeName" not in found["spec"], found
        self.audit()

    def event(self, pod: str, reason: str, *words: str) -> None:
        """Wait for an event of a pod."""
        self._until(
            f"event {reason} of {pod} with {words}",
            lambda: any(
                event["reason"] == reason
                and event["involvedObject"]["name"] == pod
                and all(word in event["message"] for word in words)
                for event in self.cluster.list("Event")
            ),
        )

    def _until(self, what: str, is_so: Callable[[], bool]) -> None:
        for _ in range(int(SECONDS / POLL_SECONDS)):
            if is_so():
                return
            self.cluster.run(asyncio.sleep(POLL_SECONDS))
        events = [(e["reason"], e["message"]) for e in self.cluster.list("Event")]
        raise AssertionError(f"not so: {what}; events: {events}")

    def allocated(self, claim: str) -> Json:
        """Wait until a claim has an allocation; its only result."""
        found = self.cluster.wait_for("ResourceClaim", claim, allocation_of, seconds=SECONDS)
        (result,) = allocation_of(found)["devices"]["results"]
        return dict(result)

    def released(self, claim: str) -> None:
        """Wait until a claim has no allocation."""
        self.cluster.wait_for(
            "ResourceClaim", claim, lambda found: not allocation_of(found), seconds=SECONDS
        )

    def remove(self, *pods: str) -> None:
        """Delete pods. What they alone held is free then."""
        claims = {name for pod in pods for name in claims_of(self.stored("Pod", pod))}
        for pod in pods:
            self.cluster.delete("Pod", pod)
            self.cluster.wait_for("Pod", pod, lambda found: found is None, seconds=SECONDS)
        for name in claims:
            self._allocations.pop(name, None)
            self.released(name)
        self.audit()

    def claim_of(self, pod: str) -> str:
        """The claim that was made for a pod from a template."""

        def name(found: Json | None) -> str:
            entries = (found or {}).get("status", {}).get("resourceClaimStatuses") or [{}]
            return str(entries[0].get("resourceClaimName", ""))

        return name(self.cluster.wait_for("Pod", pod, name, seconds=SECONDS))

    # --- who holds what ---

    def audit(self) -> None:
        """No device is given away twice, no share is more than there is, and what pods hold that run stays theirs."""
        pods = self.cluster.list("Pod")  # first: a pod that has a node by now had its claims before
        claims = self.cluster.list("ResourceClaim")
        check_holders(claims, self.cluster.list("ResourceSlice"))
        by_name = {claim["metadata"]["name"]: claim for claim in claims}
        for name, allocation in self._allocations.items():
            assert allocation_of(by_name[name]) == allocation, f"claim {name} of a running pod"
        for pod in pods:
            if not pod["spec"].get("nodeName"):
                continue
            for name in claims_of(pod):
                assert allocation_of(by_name[name]), f"pod {pod['metadata']['name']} runs without"
                self._allocations.setdefault(name, allocation_of(by_name[name]))


def check_holders(claims: list[Json], slices: list[Json]) -> None:
    """An account of its own, from what is stored alone."""
    holders: dict[tuple[str, str, str], list[tuple[str, Json]]] = defaultdict(list)
    for claim in claims:
        for result in (allocation_of(claim).get("devices") or {}).get("results", ()):
            device = (result["driver"], result["pool"], result["device"])
            holders[device].append((claim["metadata"]["name"], result))
    published = {
        (slice_["spec"]["driver"], slice_["spec"]["pool"]["name"], device["name"]): device
        for slice_ in slices
        for device in slice_["spec"].get("devices", ())
    }
    for device, held in holders.items():
        shares = [result.get("shareID") for _, result in held]
        assert len(held) == 1 or all(shares), f"{device} is held by {held}"
        assert len(set(shares)) == len(shares), f"{device}: one share ID twice"
        for name, capacity in published.get(device, {}).get("capacity", {}).items():
            consumed = [
                Quantity.parse(result["consumedCapacity"][name])
                for _, result in held
                if name in (result.get("consumedCapacity") or {})
            ]
            total = sum(consumed, Quantity.of(0))
            assert total <= Quantity.parse(capacity["value"]), f"{device}: {held}"


def allocation_of(claim: Mapping[str, Any] | None) -> Json:
    return ((claim or {}).get("status") or {}).get("allocation") or {}


def condition_of(pod: Mapping[str, Any] | None, type_: str = "PodScheduled") -> Json:
    conditions = (pod or {}).get("status", {}).get("conditions") or ()
    return next((dict(each) for each in conditions if each["type"] == type_), {})


def claims_of(pod: Mapping[str, Any]) -> Iterator[str]:
    made = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in pod["status"].get("resourceClaimStatuses") or ()
    }
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or made.get(entry["name"])
        if name:
            yield name


def dra(kind: str, name: str, spec: Mapping[str, Any]) -> Json:
    metadata = {"name": name}
    if kind.startswith("ResourceClaim"):
        metadata["namespace"] = "default"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": dict(spec),
    }


def exactly(name: str = "r", **rest: Any) -> Json:
    """A request for one device."""
    return {"name": name, "exactly": {"deviceClassName": CLASS, **rest}}


def selector(expression: str) -> list[Json]:
    return [{"cel": {"expression": expression}}]


@contextmanager
def refused(*words: str) -> Iterator[None]:
    """The API server refuses what is done in the block, and says so."""
    with pytest.raises(RefusedError) as raised:
        yield
    assert all(word in str(raised.value) for word in words), raised.value


@contextmanager
def a_cluster(storage: str, directory: Path, rules: str = RuleSet.SEEDS) -> Iterator[AllotCluster]:
    """In memory in virtual time; on SQLite and etcd in real time, and with a real server.

    `rolling` is in memory, too, and restarts only the components whose gates change.
    """
    settings = ClusterSettings(rules=rules)
    if storage == "memory":
        with VirtualTimeCluster(settings) as cluster:
            yield cluster
        return
    if storage == "rolling":
        with RollingCluster(settings) as cluster:
            yield cluster
        return
    if storage == "sqlite":
        with RealTimeCluster(directory / "allot", settings, "sqlite") as cluster:
            yield cluster
        return
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    etcd = EtcdServer(directory)
    etcd.start()
    try:
        with RealTimeCluster(directory / "allot", settings, f"etcd:{etcd.url}") as cluster:
            yield cluster
    finally:
        etcd.stop()
