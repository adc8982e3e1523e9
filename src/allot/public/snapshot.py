"""A cluster at one moment, as a value: load it, query it, derive others from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from allot.allocation import Inventory, Ledger
from allot.allocation.explain.amounts import counted
from allot.api.base import replace
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass
from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.api.meta import ObjectMeta
from allot.api.slices import ResourceSlice
from allot.client import resources
from allot.client.cluster_gates import ClusterGates, gates_of_cluster
from allot.client.resources import RESOURCES, Resource
from allot.client.snapshot import Snapshot
from allot.client.wall_clock import utc_now
from allot.features import DEVICE_TAINTS, FeatureGates
from allot.lint.manifests import Manifest
from allot.public.allocations import Allocation
from allot.public.arguments import (
    decoded_claim,
    key_named,
    manifests_of,
    not_found,
    read_target,
    resource_named,
    target_of,
)
from allot.public.cluster_reading import Reading, read_objects
from allot.public.devices import Device, device_of
from allot.public.errors import ClusterError
from allot.public.gates import feature_gates as resolve_gates
from allot.public.gates import rule_set
from allot.public.loading import completed, objects_in
from allot.public.manifest_files import read_files, readable
from allot.public.nodes import ClaimLike, NodeSnapshot
from allot.rules import RuleSet

if TYPE_CHECKING:
    from allot.client.client import Client
    from allot.public.explanations import Explanation

T = TypeVar("T")
Gates = FeatureGates | Mapping[str, bool] | None


class ClusterSnapshot:
    """Nodes, devices, claims and pods at one moment. It does not follow the cluster.

    Created by `allot.load`, `allot.loads` and `allot.snapshot`. Immutable: methods that change something return
    another snapshot.
    """

    def __init__(self, objects: Snapshot, known: ClusterGates) -> None:
        self._objects = objects
        self._known = known

    @property
    def feature_gates(self) -> FeatureGates:
        return self._known.gates

    @property
    def rules(self) -> str:
        """`seeds` (the KEPs) or `v1.38` (Kubernetes)."""
        return self._known.rules.value

    # --- objects ---

    @cached_property
    def nodes(self) -> tuple[NodeSnapshot, ...]:
        """By name. A node that only ResourceSlices name is included, without labels."""
        found = {slice_.spec.node_name: None for slice_ in self.slices if slice_.spec.node_name}
        known = {node.metadata.name: node for node in self._objects.of(resources.NODES)}
        return tuple(
            NodeSnapshot(self, known.get(name) or Node({"metadata": {"name": name}}))
            for name in sorted({*found, *known})
        )

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(self._objects.of(resources.PODS))

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return tuple(self._objects.of(resources.RESOURCE_CLAIMS))

    @property
    def slices(self) -> tuple[ResourceSlice, ...]:
        return tuple(self._objects.of(resources.RESOURCE_SLICES))

    @cached_property
    def device_classes(self) -> Mapping[str, DeviceClass]:
        found = self._objects.of(resources.DEVICE_CLASSES)
        return MappingProxyType({each.metadata.name: each for each in found})

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """All published devices of the newest generation of each pool, by driver, pool and name."""
        newest: dict[tuple[str, str], int] = {}
        for slice_ in self.slices:
            pool = (slice_.spec.driver, slice_.spec.pool.name)
            newest[pool] = max(newest.get(pool, 0), slice_.spec.pool.generation)
        found = [
            self._device(slice_, number)
            for slice_ in self.slices
            if slice_.spec.pool.generation == newest[slice_.spec.driver, slice_.spec.pool.name]
            for number in range(len(slice_.spec.devices or ()))
        ]
        return tuple(sorted(found, key=lambda device: device.id))

    def _device(self, slice_: ResourceSlice, number: int) -> Device:
        assert slice_.spec.devices is not None
        device = slice_.spec.devices[number]
        id_ = slice_.spec.device_id(device)
        return device_of(device, id_, device.taints, self.ledger.holders(id_))

    def node(self, name: str) -> NodeSnapshot:
        """The node of this name; `NotFoundError` if it does not exist."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise not_found("node", name, (node.name for node in self.nodes))

    def pod(self, name: str) -> Pod:
        """The pod `name` of the namespace default, or `namespace/name`."""
        return self._get(resources.PODS, name)

    def claim(self, name: str) -> ResourceClaim:
        """The ResourceClaim `name` of the namespace default, or `namespace/name`."""
        return self._get(resources.RESOURCE_CLAIMS, name)

    def _get(self, resource: Resource[T], name: str) -> T:
        key = key_named(name)
        found = self._objects.get(resource, key)
        if found is None:
            known = [str(resource.codec.key(each)) for each in self._objects.of(resource)]
            raise not_found(resource.kind, str(key), known)
        return found

    # --- queries ---

    def explain(
        self, what: str | Pod | ResourceClaim | Mapping[str, Any], *, now: datetime | None = None
    ) -> Explanation:
        """Explains the state of a pod or a claim, the reasons, and changes that would help.

        `what` is `pod/NAME`, `claim/NAME` (or `pod/NAMESPACE/NAME`), an object of the snapshot, or a manifest of a pod
        or a claim that is not in it, explained as if it were created now. Ages are those at `now`, by default the
        present.
        """
        if isinstance(what, Mapping):
            return self.with_objects(what)._explain(*target_of(what), now)
        if isinstance(what, Pod):
            return self._explain("pod", what.key, now)
        if isinstance(what, ResourceClaim):
            return self._explain("claim", what.key, now)
        return self._explain(*read_target(what), now)

    def _explain(self, kind: str, key: ObjectKey, now: datetime | None) -> Explanation:
        from allot.public.explanations import explain_object

        found = explain_object(self._objects, self._known, kind, key, now or utc_now())
        if found is None:
            resource: Resource[Any] = resources.PODS if kind == "pod" else resources.RESOURCE_CLAIMS
            known = [str(resource.codec.key(each)) for each in self._objects.of(resource)]
            raise not_found(kind, str(key), known)
        return found

    # --- other snapshots ---

    def with_objects(self, *manifests: Mapping[str, Any] | str) -> ClusterSnapshot:
        """This cluster with more objects, or other versions of them: dictionaries, or YAML text."""
        objects = self._objects.copy()
        added = objects_in(manifests_of(manifests), RESOURCES)
        for resource in RESOURCES:
            for obj in added.of(resource):
                objects.put(resource, obj)
        return ClusterSnapshot(objects, self._known)

    def without(self, kind: str, name: str) -> ClusterSnapshot:
        """This cluster without an object: `without("Node", "n1")`."""
        resource = resource_named(kind)
        key = key_named(name) if resource.namespaced else ObjectKey("", name)
        if self._objects.get(resource, key) is None:
            known = [str(resource.codec.key(each)) for each in self._objects.of(resource)]
            raise not_found(resource.kind, str(key), known)
        objects = self._objects.copy()
        objects.remove(resource, key)
        return ClusterSnapshot(objects, self._known)

    def assume(self, allocation: Allocation) -> ClusterSnapshot:
        """This cluster after an allocation was written; new claims are added."""
        if not allocation:
            raise ValueError(f"{allocation!r} cannot be assumed")
        objects = self._objects.copy()
        for claim, result in zip(allocation._problem.claims, allocation.results, strict=True):
            status = replace(claim.status, allocation=result)
            objects.put(resources.RESOURCE_CLAIMS, replace(claim, status=status))
        return ClusterSnapshot(objects, self._known)

    def with_gates(self, feature_gates: Gates = None, rules: str | None = None) -> ClusterSnapshot:
        """The same objects under other feature gates or rules."""
        wanted = rule_set(rules) if rules is not None else self._known.rules
        gates = (
            self._known.gates.with_rules(wanted)
            if feature_gates is None
            else resolve_gates(feature_gates, wanted)
        )
        return ClusterSnapshot(self._objects, ClusterGates(gates, wanted))

    # --- allocation ---

    @cached_property
    def inventory(self) -> Inventory:
        """All slices, as input of `allot.allocation`."""
        inventory = Inventory(self.feature_gates, self.slices)
        if DEVICE_TAINTS in self.feature_gates:
            for rule in self._objects.of(resources.DEVICE_TAINT_RULES):
                inventory.put_taint_rule(rule)
        return inventory

    @cached_property
    def ledger(self) -> Ledger:
        """Devices that claims hold, as input of `allot.allocation`."""
        return self._ledger_without(())

    def _ledger_without(self, claims: Iterable[str]) -> Ledger:
        left_out = set(claims)
        if left_out and not any(claim in self.ledger for claim in left_out):
            return self.ledger
        ledger = Ledger(self.feature_gates)
        for claim in self.claims:
            holder = str(claim.key)
            if claim.status.allocation is not None and holder not in left_out:
                ledger.add(holder, claim.status.allocation)
        return ledger

    def _claim_of(self, claim: ClaimLike) -> ResourceClaim:
        """The claim given as argument, complete and not allocated."""
        if isinstance(claim, str):
            claim = self.claim(claim)
        elif isinstance(claim, Mapping):
            claim = decoded_claim(claim)
        if isinstance(claim, ResourceClaimTemplate):
            name = ObjectMeta(name=claim.metadata.name, namespace=claim.metadata.namespace)
            claim = ResourceClaim(metadata=name, spec=claim.spec.spec)
        whole: ResourceClaim = completed(claim, resources.RESOURCE_CLAIMS)
        return replace(whole, status=replace(whole.status, allocation=None))

    def __repr__(self) -> str:
        counts = (
            (len(self.nodes), "node"),
            (len(self.devices), "device"),
            (len(self.claims), "claim"),
            (len(self.pods), "pod"),
        )
        shown = ", ".join(counted(number, word) for number, word in counts)
        return f"<ClusterSnapshot {shown}; rules {self.rules}>"


# --- loading ---


def load(
    *sources: str | PathLike[str],
    feature_gates: Gates = None,
    rules: RuleSet | str = RuleSet.SEEDS,
) -> ClusterSnapshot:
    """The cluster that manifests describe: files, directories, or patterns such as `cluster/*.yaml`.

    Reads the output of `kubectl get … -o yaml` and manifests written by hand; other kinds are skipped.
    `ManifestError` has the file and line if a manifest cannot be read.
    """
    if not sources:
        raise TypeError("load() needs at least one file, directory or pattern")
    manifests = (each for file in read_files(sources) for each in file.manifests())
    return _loaded(readable(manifests), feature_gates, rules)


def loads(
    *texts: str, feature_gates: Gates = None, rules: RuleSet | str = RuleSet.SEEDS
) -> ClusterSnapshot:
    """The cluster that YAML or JSON text describes."""
    return _loaded(manifests_of(texts), feature_gates, rules)


def _loaded(
    manifests: Iterable[Manifest], feature_gates: Gates, rules: RuleSet | str
) -> ClusterSnapshot:
    wanted = rule_set(rules)
    gates = resolve_gates(feature_gates, wanted)
    return ClusterSnapshot(objects_in(manifests, RESOURCES), ClusterGates(gates, gates.rule_set))


def snapshot(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    rules: RuleSet | str | None = None,
) -> ClusterSnapshot:
    """A running cluster as it is now: kubectl's current context by default. Needs the right to list.

    Feature gates and rules are those of the cluster, if it exposes them. Works inside a running event loop, as
    in a notebook, too; in asynchronous code `await snapshot_async(client)` does not block.
    """
    from allot.client.connection import connect

    async def read() -> ClusterSnapshot:
        client = connect(kubeconfig, context, user_agent="allot-snapshot")
        try:
            return await snapshot_async(client, feature_gates=feature_gates, rules=rules)
        finally:
            await client.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(read())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, read()).result()


async def snapshot_async(
    client: Client,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    rules: RuleSet | str | None = None,
) -> ClusterSnapshot:
    """A running cluster as it is now, read with a client of `allot.connect`."""
    from allot.client.errors import ClientError
    from allot.client.server_gates import API_SERVER, SCHEDULER
    from allot.scheduler.explain.static_scheduler import DEVICE_KINDS, VOLUME_KINDS

    kinds = (*DEVICE_KINDS, *VOLUME_KINDS, resources.RESOURCE_QUOTAS)
    try:
        objects = await read_objects(client, Reading(kinds, gate_pages=(SCHEDULER, API_SERVER)))
    except ClientError as error:
        raise ClusterError(str(error)) from error
    asked = rule_set(rules) if rules is not None else None
    return ClusterSnapshot(objects, gates_of_cluster(objects, feature_gates or {}, asked))
