"""The dynamic resources of all simulated nodes: starts, restarts and stops their kubelets.

An annotation of the Node restarts its kubelet, another one makes it offline: both end the process in which the kubelet would
be, whatever it is doing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from allot.api.claims import ResourceClaim
from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.client.errors import ClientError
from allot.client.event_recorder import EventRecorder
from allot.client.events import WARNING, reference_to
from allot.client.informer import Informer
from allot.client.options import Scope
from allot.client.resources import NODES, Resource
from allot.kubelet.dra.fault_checks import unknown_devices
from allot.kubelet.dra.faults import DRIVER_FAULTS, FaultSyntaxError, NodeFaults
from allot.kubelet.dra.metrics import DraMetrics
from allot.kubelet.dra.node import DraNode, NodeContext
from allot.kubelet.dra.paths import MAX_SOCKET_PATH, NodePaths, node_paths
from allot.kubelet.dra.plugin_watcher import PluginWatcher
from allot.kubelet.dra.pod_work import DONE, PENDING, PodWorkOutcome
from allot.kubelet.dra.slice_wipes import SliceWipes
from allot.kubelet.node_status import is_offline
from allot.kubelet.settings import KubeletSettings

if TYPE_CHECKING:
    from allot.kubelet.dra.node_sockets import NodeSockets

log = logging.getLogger(__name__)

KUBELET_RESTART: Final = "allot.dev/kubelet-restart"
"""A change of this annotation of a Node restarts its kubelet."""
BY_NODE: Final = "node"


class SimulatedHardwareDrivers(NamedTuple):
    """The drivers of the simulation's own hardware."""

    names: frozenset[str] = frozenset()
    label: str = ""
    """The label of their slices."""


class _Kubelet(NamedTuple):
    """The process of one node."""

    node: DraNode
    sockets: NodeSockets | None
    wipes: SliceWipes | None
    restart: str
    """The annotation that it was started with."""


class DraNodes:
    """The drivers and claims of all nodes of an informer."""

    def __init__(
        self,
        client: Client,
        nodes: Informer[Node],
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        slices: Resource[ResourceSlice],
        recorder: EventRecorder,
        settings: KubeletSettings,
        metrics: DraMetrics,
        hardware: SimulatedHardwareDrivers,
    ) -> None:
        """`pods` needs an index by node, `BY_NODE`."""
        self._client = client
        self._nodes, self._pods = nodes, pods
        self._slices = slices
        self._recorder = recorder
        self._settings = settings
        self._metrics = metrics
        self._hardware = hardware
        self.on_pod_change: Callable[[ObjectKey], None] | None = None
        """The pod loop looks at a pod again."""
        self._context = NodeContext(
            client.clock,
            metrics,
            claims.get,
            lambda node: pods.by_index(BY_NODE, node),
            self._queue_pod,
            self._simulates,
        )
        self._kubelets: dict[str, _Kubelet] = {}
        self._faults: dict[str, NodeFaults] = {}
        self._fault_checks: dict[str, asyncio.Task[None]] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._started: set[str] = set()
        self._is_running = True
        self._watcher = PluginWatcher(client.clock)
        nodes.add_handlers(
            on_add=self._follow,
            on_update=lambda _, node: self._follow(node),
            on_delete=self._node_deleted,
        )
        pods.add_handlers(on_delete=self._pod_deleted)

    async def run(self) -> None:
        """Run until cancelled. The informers must have synced."""
        try:
            if self._settings.plugin_dir is None:
                await asyncio.Event().wait()
            await self._wipe_at_start()
            for kubelet in self._kubelets.values():
                self._look_at_pods(kubelet)
            await self._watcher.run()
        finally:
            self._is_running = False
            for check in self._fault_checks.values():
                check.cancel()
            for name in tuple(self._kubelets):
                self._stop(name)
            await asyncio.gather(*self._closing.values(), return_exceptions=True)

    async def _wipe_at_start(self) -> None:
        """Slices of drivers that did not survive, of those that publish again, and of none that are simulated."""
        scope = Scope(label_selector=f"!{self._hardware.label}" if self._hardware.label else "")
        try:
            found = (await self._client.list(self._slices, scope)).items
        except ClientError as error:
            log.warning("slices of missing drivers stay: %s", error)
            return
        for name in {slice_.spec.node_name or "" for slice_ in found}:
            kubelet = self._kubelets.get(name)
            if kubelet is not None and kubelet.wipes is not None:
                kubelet.wipes.wipe()

    def _simulates(self, driver: str) -> bool:
        return self._settings.simulates_unregistered or driver in self._hardware.names

    # --- kubelets ---

    def _follow(self, node: Node) -> None:
        name = node.metadata.name
        if is_offline(node):
            self._stop(name)
            return
        self._read_faults(node)
        kubelet = self._kubelets.get(name)
        restart = node.metadata.annotations.get(KUBELET_RESTART, "")
        if kubelet is not None and kubelet.restart != restart:
            log.info("node %s: restarting its kubelet", name)
            self._stop(name)
            kubelet = None
        if kubelet is None and self._settings.plugin_dir is not None and name not in self._closing:
            self._start(name, restart)

    def _read_faults(self, node: Node) -> None:
        name = node.metadata.name
        text = node.metadata.annotations.get(DRIVER_FAULTS, "")
        if not text and name not in self._faults:
            return
        faults = self._faults.setdefault(name, NodeFaults())
        try:
            has_changed = faults.read(text)
        except FaultSyntaxError as error:
            self._warn_about_faults(node, str(error))
            has_changed = True
        if not has_changed:
            return
        self._cancel_fault_check(name)
        if faults.names_devices:
            self._fault_checks[name] = asyncio.create_task(self._check_faults(node, faults))
        kubelet = self._kubelets.get(name)
        if kubelet is not None:
            kubelet.node.faults_changed()

    async def _check_faults(self, node: Node, faults: NodeFaults) -> None:
        name = node.metadata.name
        try:
            problems = await unknown_devices(self._client, self._slices, name, faults.by_driver)
        except ClientError as error:
            log.info("node %s: devices of %s not checked: %s", name, DRIVER_FAULTS, error)
            return
        for problem in problems:
            self._warn_about_faults(node, problem)

    def _warn_about_faults(self, node: Node, problem: str) -> None:
        note = f"annotation {DRIVER_FAULTS}: {problem}"
        self._recorder.event(
            reference_to(NODES, node), WARNING, "InvalidAnnotation", "Simulating", note
        )

    def _cancel_fault_check(self, name: str) -> None:
        check = self._fault_checks.pop(name, None)
        if check is not None:
            check.cancel()

    def _node_deleted(self, node: Node) -> None:
        self._cancel_fault_check(node.metadata.name)
        self._stop(node.metadata.name)

    def _start(self, name: str, restart: str) -> _Kubelet:
        faults = self._faults.setdefault(name, NodeFaults())
        paths = self._paths(name)
        wipes = self._wipes(name) if paths is not None else None
        node = DraNode(name, self._context, faults, paths, wipes)
        kubelet = _Kubelet(node, self._sockets(node, paths), wipes, restart)
        self._kubelets[name] = kubelet
        if name in self._started:
            if wipes is not None:
                wipes.wipe()
            self._look_at_pods(kubelet)
        self._started.add(name)
        return kubelet

    def _look_at_pods(self, kubelet: _Kubelet) -> None:
        """Of a kubelet that has just started: those that exist, and those that its checkpoint knows."""
        pods = self._pods.by_index(BY_NODE, kubelet.node.name)
        kubelet.node.release_vanished(pod.metadata.uid for pod in pods)
        for pod in pods:
            self._queue_pod(pod.key)

    def _paths(self, name: str) -> NodePaths | None:
        directory = self._settings.plugin_dir
        if directory is None:
            return None
        paths = node_paths(Path(directory), name)
        paths.create()
        if len(str(paths.registry).encode()) > MAX_SOCKET_PATH - len("/x-reg.sock"):
            log.warning(
                "node %s: no driver can register: %s is too long for sockets, which may have %s bytes",
                name,
                paths.registry,
                MAX_SOCKET_PATH,
            )
        return paths

    def _sockets(self, node: DraNode, paths: NodePaths | None) -> NodeSockets | None:
        if paths is None:
            return None
        from allot.kubelet.dra.node_sockets import NodeSockets

        return NodeSockets(
            node,
            paths,
            self._watcher,
            self._metrics,
            self._client.clock,
            lambda: (p for p in self._pods.by_index(BY_NODE, node.name) if not p.is_finished),
        )

    def _wipes(self, name: str) -> SliceWipes:
        return SliceWipes(
            self._client,
            self._slices,
            name,
            self._settings.slice_wipe_seconds,
            self._hardware.label,
        )

    def _stop(self, name: str) -> None:
        kubelet = self._kubelets.pop(name, None)
        if kubelet is None:
            return
        kubelet.node.close()
        if kubelet.sockets is not None:
            self._closing[name] = asyncio.create_task(self._close(name, kubelet.sockets))

    async def _close(self, name: str, sockets: NodeSockets) -> None:
        try:
            await sockets.close()
        finally:
            del self._closing[name]
        node = self._nodes.get(ObjectKey("", name))
        if node is not None and self._is_running:
            self._follow(node)

    # --- pods ---

    def _queue_pod(self, key: ObjectKey) -> None:
        if self.on_pod_change is not None:
            self.on_pod_change(key)

    def _pod_deleted(self, pod: Pod) -> None:
        kubelet = self._kubelets.get(pod.node_name)
        if kubelet is not None:
            others = self._pods.by_index(BY_NODE, pod.node_name)
            kubelet.node.pod_deleted(pod, (each.metadata.uid for each in others if each is not pod))

    def _node(self, name: str) -> DraNode | None:
        kubelet = self._kubelets.get(name)
        if kubelet is None and self._settings.plugin_dir is None:
            node = self._nodes.get(ObjectKey("", name))
            if node is None or is_offline(node):
                return None
            restart = node.metadata.annotations.get(KUBELET_RESTART, "")
            kubelet = self._start(name, restart)
        return kubelet.node if kubelet is not None else None

    def prepare(self, pod: Pod, claims: Sequence[ResourceClaim]) -> PodWorkOutcome:
        """Prepare the claims of a pod."""
        node = self._node(pod.node_name)
        return PENDING if node is None else node.prepare(pod, claims)

    def release(self, pod: Pod) -> PodWorkOutcome:
        """Unprepare the claims of a pod whose containers have ended."""
        kubelet = self._kubelets.get(pod.node_name)
        if kubelet is None:  # it restarts; without a checkpoint it would not know the pod
            return DONE if self._settings.plugin_dir is None else PENDING
        return kubelet.node.release(pod)

    def container_devices(self, pod: Pod) -> Mapping[str, Any]:
        """What containers get. Raises `ContainerError`."""
        kubelet = self._kubelets.get(pod.node_name)
        return kubelet.node.container_devices(pod) if kubelet is not None else {}

    def with_health(self, status: dict[str, Any], pod: Pod) -> dict[str, Any]:
        kubelet = self._kubelets.get(pod.node_name)
        return kubelet.node.with_health(status, pod) if kubelet is not None else status
