"""The dashboard of one cluster: follows its source, keeps floor plan, figures and history, and tells viewers of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from allot.api.identities import DeviceId, ObjectKey
from allot.client import resources
from allot.client.resources import Resource
from allot.dashboard import answers
from allot.dashboard.answers import AskedChange
from allot.dashboard.children import AnswerError, Children, encode
from allot.dashboard.claim_log import ClaimLog
from allot.dashboard.cluster_source import ClusterSource
from allot.dashboard.figures import FigureCounter
from allot.dashboard.floor_plan import STATES, FloorPlan, PoolPlan
from allot.dashboard.history import RecentHistory
from allot.dashboard.object_details import claim_detail, device_detail, pod_detail
from allot.dashboard.object_lists import list_objects
from allot.dashboard.viewers import Viewers, message
from allot.driver.loading import profiles
from allot.questions.observed_cluster import ObservedCluster, UnreadableError
from allot.questions.workload_model import BY_KIND
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

BATCH_SECONDS: Final = 0.1
"""Changes within this time are one message."""
UNWATCHED_BATCH_SECONDS: Final = 1.0
"""The same while no page is open: history goes on."""
FIGURE_SECONDS: Final = 1.0
"""Figures are counted so often, if anything has changed."""
PING_EVERY_SECONDS: Final = 5.0
DEVICES_AT_ONCE: Final = 500
"""Devices that are computed before other tasks get a turn: a few milliseconds."""
DEVICES_SENT_AT_ONCE: Final = 5_000
"""The same for devices that are sent to a new viewer."""
PENDING_SECONDS: Final = 20.0
WHAT_IF_SECONDS: Final = 60.0
EXPRESSION_SECONDS: Final = 15.0
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "Job"})


class NodeFacts(msgspec.Struct, frozen=True, array_like=True):
    """A node as the floor plan shows it."""

    name: str
    is_ready: bool
    is_cordoned: bool


class Dashboard:
    """Everything that the page shows."""

    def __init__(self, source: ClusterSource) -> None:
        self.source = source
        clock = source.clock
        self.viewers = Viewers(self.everything)
        self._figures = FigureCounter(clock)
        self.floor = FloorPlan(source.gates, self._figures.publish)
        self.history = RecentHistory(clock())
        self._clock = clock
        self._has_begun = False
        """Whether the floor plan had all devices once: later changes are history."""
        self._claims = ClaimLog(clock)
        self._children = Children()
        self._changed = asyncio.Event()
        self._nodes: dict[str, NodeFacts] = {}
        self._changed_nodes: dict[str, NodeFacts | None] = {}
        """Nodes that have changed; None: gone."""
        self._revision = 0
        """Increases with each change of an object."""
        self._pending: tuple[int, bytes] | None = None
        self._pending_lock = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        for handler in (self.floor.changed, self._figures.changed, self._claims.changed):
            source.add_handler(handler)
        source.add_handler(self._object_changed)
        source.on_moment = self._end_moment

    async def start(self) -> None:
        """Returns when all objects are known; `ClientError` if the cluster does not answer."""
        await self.source.start()
        await self.refresh()
        self._tasks = [
            asyncio.create_task(self._follow(), name="dashboard: changes"),
            asyncio.create_task(self._count(), name="dashboard: figures"),
            asyncio.create_task(self._ping(), name="dashboard: connection"),
        ]

    async def stop(self) -> None:
        await cancel_and_wait(*self._tasks, ignore_errors=True)
        await self.source.stop()

    # --- changes ---

    def _object_changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        self._revision += 1
        if resource is resources.NODES:
            node = new if new is not None else old
            name, facts = node.metadata.name, _facts(new) if new is not None else None
            self._changed_nodes[name] = facts
            if facts is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = facts
        if not self._changed.is_set():
            self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(BATCH_SECONDS if self.viewers else UNWATCHED_BATCH_SECONDS)
            self._changed.clear()
            try:
                await self.refresh()
            except Exception:
                log.exception("the floor plan could not be updated")

    async def _count(self) -> None:
        counted = -1
        while True:
            if counted != self._revision:
                counted = self._revision
                self._record_figures()
            await asyncio.sleep(FIGURE_SECONDS)

    def _record_figures(self) -> None:
        figures = self._figures.now()
        self.history.record_figures(figures)
        self.viewers.send("figures", {"revision": self._revision, "figures": figures})

    async def _end_moment(self) -> None:
        await self.refresh()
        self._record_figures()

    async def refresh(self) -> None:
        """Take the changes since the last time, and tell viewers. Other tasks run in between."""
        self._refresh_some()
        while self.floor.is_outdated:
            await asyncio.sleep(0)
            self._refresh_some()
        if not self._has_begun:
            self._has_begun = True
            self.history.begins_at = self._clock()

    def _refresh_some(self) -> None:
        now = self._clock()
        change = self.floor.refresh(DEVICES_AT_ONCE)
        nodes, self._changed_nodes = self._changed_nodes, {}
        if not self._has_begun:
            self.history.begin(change)
        elif change:
            self.history.record(change, now)
        if change or nodes:
            update = {
                "at": now,
                "pools": change.pools,
                "gone": change.gone,
                "cells": change.cells,
                "nodes": list(nodes.items()),
            }
            self.viewers.send("change", update)

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_EVERY_SECONDS)
            if self.viewers:
                before = self.source.problem
                await self.source.ping()
                if self.source.problem != before:
                    self.viewers.send("status", self._status())

    def everything(self) -> Iterator[bytes]:
        """The messages for a new viewer, each with what is known when it is made."""
        yield message("status", self._status())
        nodes = list(self._nodes.items())
        yield message("begin", {"states": STATES, "nodes": nodes})
        pools: list[PoolPlan] = []
        devices = 0
        for plan in self.floor.plans():
            pools.append(plan)
            devices += len(plan.places)
            if devices >= DEVICES_SENT_AT_ONCE:
                yield message("change", {"pools": pools})
                pools, devices = [], 0
        if pools:
            yield message("change", {"pools": pools})
        yield message("ready", {"at": self._clock()})
        figures = self._figures.now()
        yield message("figures", {"revision": self._revision, "figures": figures})

    def _status(self) -> dict[str, Any]:
        return {
            "title": self.source.title,
            "namespace": self.source.namespace,
            "problem": self.source.problem,
            "notes": self.source.notes,
            "begins": self.history.begins_at,
        }

    # --- questions ---

    async def pending(self) -> bytes:
        """The pending pods by cause; computed again only if something has changed."""
        async with self._pending_lock:
            if self._pending is None or self._pending[0] != self._revision:
                revision, cluster = self._revision, self._observed()
                found = await self._children.answer(
                    lambda: answers.pending(cluster), PENDING_SECONDS
                )
                self._pending = revision, found
            return self._pending[1]

    async def explain(self, kind: str, key: ObjectKey) -> bytes:
        cluster = self._observed()
        return await self._children.answer(
            lambda: answers.explain(cluster, self.floor, kind, key), PENDING_SECONDS
        )

    async def what_if(self, changes: list[AskedChange]) -> bytes:
        cluster, namespace = self._observed(), self.source.namespace
        return await self._children.answer(
            lambda: answers.what_if(cluster, self.floor, changes, namespace), WHAT_IF_SECONDS
        )

    async def try_expression(self, expression: str, *, is_derived: bool) -> bytes:
        cluster = self._observed()
        return await self._children.answer(
            lambda: answers.try_expression(cluster, self.floor, expression, is_derived=is_derived),
            EXPRESSION_SECONDS,
        )

    def _observed(self) -> ObservedCluster:
        try:
            return self.source.observed()
        except UnreadableError as error:
            raise AnswerError(str(error)) from None

    # --- details ---

    def device(self, device: DeviceId) -> bytes | None:
        found = device_detail(self.floor, device)
        if found is None:
            return None
        number = found["number"]
        changes = self.history.of_device(number) if number is not None else ()
        return encode(found | {"history": changes, "begins": self.history.begins_at})

    async def claim(self, key: ObjectKey) -> bytes | None:
        events = await self.source.events_about("ResourceClaim", *key)
        found = claim_detail(self.source.objects, key, self._claims.of(key), events)
        return None if found is None else encode(found)

    async def pod(self, key: ObjectKey) -> bytes | None:
        events = await self.source.events_about("Pod", *key)
        found = pod_detail(self.source.objects, key, events)
        return None if found is None else encode(found)

    async def objects(self, kind: str, search: str, state: str, page: int) -> bytes:
        return encode(await list_objects(self.source.objects, kind, search.lower(), state, page))

    def choices(self) -> bytes:
        """What the what-if form offers: profiles of hardware, nodes, and workloads that can be scaled."""
        workloads = [
            (f"{kind.kind.lower()}/{obj.key.namespace}/{obj.key.name}", _replicas(obj))
            for kind in BY_KIND.values()
            if kind.kind in _WORKLOADS
            for obj in self.source.objects.of(kind)
        ]
        nodes = sorted(node.metadata.name for node in self.source.objects.of(resources.NODES))
        return encode({"profiles": profiles(), "nodes": nodes, "workloads": sorted(workloads)})

    def recorded_figures(self) -> bytes:
        return encode(
            {
                "begins": self.history.begins_at,
                "ends": self._clock(),
                "figures": self.history.figures(),
            }
        )

    def floor_at(self, at: float) -> bytes:
        return encode(self.history.floor_at(at))


def _facts(node: Any) -> NodeFacts:
    ready = node.has_condition("Ready")
    has_conditions = bool(node.get("status", "conditions", default=()))
    cordoned = bool(node.get("spec", "unschedulable", default=False))
    return NodeFacts(node.metadata.name, ready or not has_conditions, cordoned)


def _replicas(workload: Any) -> int:
    field = "parallelism" if workload.kind == "Job" else "replicas"
    return int(workload.get("spec", field, default=1))
