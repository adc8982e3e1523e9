"""Prepares the claims of a node's pods before they start, and unprepares them after they end.

Claims are prepared once in the life of a kubelet, with one call per driver for all claims of a pod, and unprepared
when their last pod on the node ends. The checkpoint has every claim before a driver is called about it, so that a
restarted kubelet unprepares whatever may have been prepared. What drivers answered is written a little later, for many
pods together: a checkpoint from before makes a restarted kubelet repeat calls, which are idempotent. Texts of errors
are Kubernetes'.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple, Protocol

from allot.api.claims import ResourceClaim
from allot.api.core import Pod
from allot.client.clock import Clock, Timer
from allot.kubelet.dra.checkpoint import Checkpoint
from allot.kubelet.dra.claim_info import (
    ClaimInfo,
    ClaimInfoCache,
    ClaimReference,
    PreparedClaim,
    results_by_driver,
)
from allot.kubelet.dra.driver_plugin import (
    DriverCallError,
    DriverNotRegisteredError,
    DriverPlugin,
)
from allot.kubelet.dra.metrics import PREPARE, UNPREPARE, DraMetrics
from allot.kubelet.dra.simulated_driver import SimulatedDriver

log = logging.getLogger(__name__)

NODE_PREPARE: Final = "NodePrepareResources"
NODE_UNPREPARE: Final = "NodeUnprepareResources"
ALL_OPERATIONS: Final = "*"
CHECKPOINT_DELAY_SECONDS: Final = 0.1
"""How long the answers of drivers are collected before they are written."""


class PrepareError(Exception):
    """The claims of a pod are not prepared. Retried."""


class UnprepareError(Exception):
    """Not all claims of a pod are unprepared. Retried."""


class Plugins(Protocol):
    """The drivers of a node."""

    def get(self, driver: str) -> DriverPlugin:
        """Raises `DriverNotRegisteredError`."""
        ...


class _Batch(NamedTuple):
    """One call: a driver, and the claims it is about."""

    plugin: DriverPlugin
    claims: list[ClaimReference]


class DraManager:
    """The claims of one node."""

    def __init__(
        self,
        plugins: Plugins,
        checkpoint: Checkpoint | None,
        metrics: DraMetrics,
        clock: Clock,
    ) -> None:
        self._plugins = plugins
        self._checkpoint = checkpoint
        self._metrics = metrics
        self._clock = clock
        self._now = clock.now
        self._saving: Timer | None = None
        self.claims = ClaimInfoCache(checkpoint.load() if checkpoint is not None else ())
        for info in self.claims:
            metrics.claim_added(info.devices_by_driver)

    def close(self) -> None:
        """The kubelet ends: forget all claims, but not the checkpoint."""
        if self._saving is not None:
            self._save()
        for info in self.claims:
            self._metrics.claim_removed(info.devices_by_driver)
        self.claims = ClaimInfoCache()
        self._checkpoint = None  # a call that ends later must not replace it

    def is_prepared(self, pod: Pod, claims: Collection[ResourceClaim]) -> bool:
        """Whether all claims are prepared for this pod."""
        uid = pod.metadata.uid
        for claim in claims:
            info = self.claims.get(claim.metadata.key)
            if info is None or not info.is_prepared or uid not in info.pod_uids:
                return False
        return True

    # --- prepare ---

    def prepare_at_once(self, pod: Pod, claims: Sequence[ResourceClaim]) -> bool:
        """Prepare the claims if only simulated drivers are needed; whether they were. Raises `PrepareError`."""
        if not all(
            isinstance(self._plugin(driver), SimulatedDriver)
            for claim in claims
            for driver in _drivers_to_prepare(claim)
        ):
            return False
        started = self._now()
        plugins = self._check(claims)
        infos = self._begin(pod, claims)
        if any(info.lock.locked() for info in infos):
            return False
        for batch in self._batches(infos, claims, plugins):
            assert isinstance(batch.plugin, SimulatedDriver)
            self._note_answer(batch, batch.plugin.prepare_at_once(batch.claims))
        self._complete(infos)
        self._metrics.operation(PREPARE, self._now() - started, is_error=False)
        return True

    def _plugin(self, driver: str) -> DriverPlugin | None:
        try:
            return self._plugins.get(driver)
        except DriverNotRegisteredError:
            return None

    async def prepare(self, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        """Prepare all claims of a pod. Raises `PrepareError`."""
        started = self._now()
        is_error = True
        try:
            plugins = self._check(claims)
            infos = self._begin(pod, claims)
            async with _locked(infos):
                for batch in self._batches(infos, claims, plugins):
                    self._note_answer(batch, await batch.plugin.prepare(batch.claims))
                self._complete(infos)
            is_error = False
        except DriverCallError as error:
            raise PrepareError(f"{NODE_PREPARE}: {error}") from error
        finally:
            self._metrics.operation(PREPARE, self._now() - started, is_error=is_error)

    def _check(self, claims: Sequence[ResourceClaim]) -> dict[str, DriverPlugin]:
        """The drivers to call, all of them: nothing is begun for a pod that cannot be prepared."""
        try:
            return {
                driver: self._plugins.get(driver)
                for claim in claims
                for driver in _drivers_to_prepare(claim)
            }
        except DriverNotRegisteredError as error:
            raise PrepareError(str(error)) from error

    def _begin(self, pod: Pod, claims: Sequence[ResourceClaim]) -> list[ClaimInfo]:
        """Note the pod as a user of its claims."""
        known = [self._known(claim) for claim in claims]
        infos = [
            self._new(claim) if info is None else info
            for claim, info in zip(claims, known, strict=True)
        ]
        uid = pod.metadata.uid
        begun = [info for info in infos if uid not in info.pod_uids]
        for info in begun:
            self.claims.add_pod(info, uid)
        self._note_begun(begun)
        return infos

    def _new(self, claim: ResourceClaim) -> ClaimInfo:
        info = _new_info(claim)
        self.claims.put(info)
        self._metrics.claim_added(info.devices_by_driver)
        return info

    def _batches(
        self,
        infos: Sequence[ClaimInfo],
        claims: Sequence[ResourceClaim],
        plugins: Mapping[str, DriverPlugin],
    ) -> list[_Batch]:
        """The calls for the claims that are not prepared."""
        batches: dict[str, _Batch] = {}
        for claim, info in zip(claims, infos, strict=True):
            if info.is_prepared:
                continue
            called = _drivers_to_prepare(claim)
            for driver in info.devices_by_driver:
                if driver in called:
                    batch = batches.setdefault(driver, _Batch(plugins[driver], []))
                    batch.claims.append(info.reference)
                else:
                    self._metrics.prepare_skipped(driver)
        return list(batches.values())

    def _known(self, claim: ResourceClaim) -> ClaimInfo | None:
        metadata = claim.metadata
        info = self.claims.get(metadata.key)
        if info is None:
            return None
        if info.reference.uid != metadata.uid:
            raise PrepareError(
                f"old ResourceClaim with same name {metadata.name} and different UID {info.reference.uid} "
                "still exists (previous pod force-deleted?!)"
            )
        if info.is_unpreparing:
            raise PrepareError(
                f"ResourceClaim {metadata.namespace}/{metadata.name} is being unprepared"
            )
        return info

    def _note_answer(self, batch: _Batch, answer: Mapping[str, PreparedClaim]) -> None:
        names = {claim.uid: claim for claim in batch.claims}
        for uid, prepared in answer.items():
            if uid not in names:
                raise PrepareError(f"{NODE_PREPARE} returned result for unknown claim UID {uid}")
            if prepared.error:
                raise PrepareError(
                    f"{NODE_PREPARE} failed for ResourceClaim {names[uid].name}: {prepared.error}"
                )
            info = self.claims.get(names[uid].key)
            if info is not None:
                info.devices_by_driver[batch.plugin.driver] = prepared.devices
        if missing := len(names) - len(answer):
            raise PrepareError(f"{NODE_PREPARE} skipped {missing} ResourceClaims")

    def _complete(self, prepared: Iterable[ClaimInfo]) -> None:
        for info in prepared:
            info.is_prepared = True
        self._save_later()

    # --- unprepare ---

    async def unprepare(self, pod_uid: str) -> None:
        """The pod has ended: unprepare the claims that no other pod uses. Raises `UnprepareError`."""
        if not self.claims.has_pod(pod_uid):
            return
        started = self._now()
        is_error = True
        try:
            await self._unprepare(pod_uid)
            is_error = False
        except DriverCallError as error:
            raise UnprepareError(f"{NODE_UNPREPARE}: {error}") from error
        except DriverNotRegisteredError as error:
            raise UnprepareError(str(error)) from error
        finally:
            self._metrics.operation(UNPREPARE, self._now() - started, is_error=is_error)

    async def _unprepare(self, pod_uid: str) -> None:
        async with _locked(self.claims.of_pod(pod_uid)):
            last: list[ClaimInfo] = []
            for info in self.claims.of_pod(pod_uid):
                if len(info.pod_uids) > 1:
                    self.claims.remove_pod(info, pod_uid)
                else:
                    last.append(info)
            for info in last:
                info.is_unpreparing = True
            try:
                for batch in self._unprepare_batches(last):
                    _check_unprepared(batch, await batch.plugin.unprepare(batch.claims))
            finally:
                for info in last:
                    info.is_unpreparing = False
            for info in last:
                self.claims.remove(info)
                self._metrics.claim_removed(info.devices_by_driver)
            self._save_later()

    def _unprepare_batches(self, infos: Iterable[ClaimInfo]) -> list[_Batch]:
        batches: dict[str, _Batch] = {}
        for info in infos:
            for driver in info.devices_by_driver:
                if driver in info.unprepare_skips:
                    self._metrics.unprepare_skipped(driver)
                    continue
                batch = batches.get(driver)
                if batch is None:
                    batch = batches[driver] = _Batch(self._plugins.get(driver), [])
                batch.claims.append(info.reference)
        return list(batches.values())

    def _save_later(self) -> None:
        """Write the checkpoint soon, or with the next pod."""
        if self._checkpoint is not None and self._saving is None:
            self._saving = self._clock.call_later(CHECKPOINT_DELAY_SECONDS, self._save_collected)

    def _save_collected(self) -> None:
        try:
            self._save()
        except OSError as error:
            log.error("the checkpoint of claims cannot be written: %s; retrying", error)
            self._save_later()

    def _save(self) -> None:
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if self._checkpoint is not None:
            self._checkpoint.save(filter(self._is_kept, self.claims))

    def _note_begun(self, begun: Iterable[ClaimInfo]) -> None:
        if self._checkpoint is None:
            return
        kept = [info for info in begun if self._is_kept(info)]
        if kept:
            self._checkpoint.begin(kept)
            self._save_later()

    def _is_kept(self, info: ClaimInfo) -> bool:
        """Whether a restarted kubelet must know the claim."""
        return not all(map(self._is_simulated, info.devices_by_driver))

    def _is_simulated(self, driver: str) -> bool:
        """Whether nothing outside this process remembers what the driver prepared."""
        plugin = self._plugin(driver)
        return plugin is not None and plugin.is_simulated


@asynccontextmanager
async def _locked(infos: Iterable[ClaimInfo]) -> AsyncIterator[None]:
    """No other pod's call about these claims runs meanwhile. In order, so that two pods cannot block each other."""
    async with AsyncExitStack() as stack:
        for info in sorted(infos, key=lambda info: info.reference):
            await stack.enter_async_context(info.lock)
        yield


def _new_info(claim: ResourceClaim) -> ClaimInfo:
    metadata = claim.metadata
    results = results_by_driver(claim)
    return ClaimInfo(
        ClaimReference(metadata.namespace, metadata.uid, metadata.name),
        devices_by_driver=dict.fromkeys(results, ()),
        unprepare_skips=frozenset(results.keys() - _drivers_to_call(claim, NODE_UNPREPARE)),
    )


def _drivers_to_prepare(claim: ResourceClaim) -> set[str]:
    return _drivers_to_call(claim, NODE_PREPARE)


def _drivers_to_call(claim: ResourceClaim, operation: str) -> set[str]:
    """The drivers without those all of whose devices skip the operation."""
    return {
        result.driver
        for results in results_by_driver(claim).values()
        for result in results
        if not {operation, ALL_OPERATIONS} & set(result.skip_node_operations)
    }


def _check_unprepared(batch: _Batch, answer: Mapping[str, str]) -> None:
    names = {claim.uid: claim.name for claim in batch.claims}
    for uid, error in answer.items():
        if uid not in names:
            raise UnprepareError(f"{NODE_UNPREPARE} returned result for unknown claim UID {uid}")
        if error:
            raise UnprepareError(f"{NODE_UNPREPARE} failed for ResourceClaim {names[uid]}: {error}")
    if missing := len(names) - len(answer):
        raise UnprepareError(f"{NODE_UNPREPARE} skipped {missing} ResourceClaims")
