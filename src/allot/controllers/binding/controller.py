"""The control loop: watches claims, calls the attacher, and writes the results to the claims' status.

    claim changes ──► queue (by claim) ──► decide ──► attach, detach: a task per device
         ▲                                   │            │ done, failed, progress
         └────── conditions are written ◄────┴────────────┘ queue the claim again

All persistent state is in the claims and in the devices: after a restart or a change of the leader the
controller continues from there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Coroutine
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from allot.api.claims import ResourceClaim
from allot.api.identities import DeviceId, ObjectKey, SharedDeviceId
from allot.backoff import Backoff
from allot.client.client import Client
from allot.client.errors import ApiStatusError, log_failure
from allot.client.informer import Informer
from allot.client.options import EVERYTHING, Scope
from allot.client.resources import RESOURCE_CLAIMS
from allot.client.work_queue import WorkQueue, run_workers
from allot.controllers.binding.actual_state import ActualState
from allot.controllers.binding.attacher import Attacher, AttachFailedError
from allot.controllers.binding.attachments import Attachment, AttachRequest, attach_requests
from allot.controllers.binding.attempts import (
    AttemptContext,
    AttemptLimits,
    attach_until_decided,
    detach_until_done,
)
from allot.controllers.binding.conditions import DeviceReport, failure_condition, with_reports
from allot.controllers.binding.decisions import (
    Adopt,
    Attach,
    AttachmentState,
    Detach,
    Phase,
    WriteReport,
    decide,
    orphans,
)
from allot.controllers.binding.observer import AttachOutcome, BindingObserver
from allot.controllers.binding.quarantine import Quarantine
from allot.task_cancellation import cancel_and_wait

log = logging.getLogger(__name__)

WRITE_BACKOFF: Final = Backoff(initial_seconds=0.05, max_seconds=60.0, jitter=0.0)
CONFLICT_SECONDS: Final = 0.1
"""Requeue delay after a conflict; the informer normally has the newer version of the claim by then."""
QUARANTINE_ATTEMPTS: Final = 3
NO_CLAIM: Final = ObjectKey("", "")
"""The key of attachments without a claim."""
_BY_DEVICE: Final = "device"


class BindingSettings(NamedTuple):
    """Settings that differ between drivers."""

    limits: AttemptLimits = AttemptLimits()
    progress_seconds: float = 1.0
    """Minimum interval between progress reports of a claim; a device that is ready sooner has none."""
    failure_condition: str = ""
    """The condition for permanent failures that do not name one; by default the device's first failure condition."""
    hang_seconds: float | None = 300.0
    """A device is quarantined as hung if its claim is deallocated after attaching took this long.

    An attach that never returns ends this way, with the scheduler's timeout. None: it is not quarantined.
    """
    conditions: frozenset[str] | None = None
    """The binding conditions that this controller sets; None: all."""
    workers: int = 4
    """Concurrent writes of claims. Attaching devices has no such limit."""


class BindingController:
    """Attaches the devices of one driver when claims are allocated. Run one instance per driver at a time."""

    def __init__(
        self,
        client: Client,
        driver: str,
        attacher: Attacher,
        settings: BindingSettings = BindingSettings(),  # noqa: B008 - a value
        *,
        quarantine: Quarantine | None = None,
        observer: BindingObserver | None = None,
        scope: Scope = EVERYTHING,
    ) -> None:
        self.driver = driver
        self._client = client
        self._clock = client.clock
        self._attacher = attacher
        self._settings = settings
        self._quarantine = quarantine or Quarantine()
        self._seen = observer or BindingObserver()
        self._scope = scope
        self._attempt_context = AttemptContext(settings.limits, client.clock, self._seen)
        self._lanes: WeakValueDictionary[SharedDeviceId, asyncio.Lock] = WeakValueDictionary()
        self._has_begun = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.known = ActualState()
        self._tasks: dict[tuple[ObjectKey, Attachment], asyncio.Task[None]] = {}
        self._attaching_since: dict[tuple[ObjectKey, Attachment], float] = {}
        self._queue: WorkQueue[ObjectKey] = WorkQueue(clock=self._clock, backoff=WRITE_BACKOFF)
        self._claims = Informer(
            self._client, RESOURCE_CLAIMS, self._scope, indexes={_BY_DEVICE: self._devices}
        )
        self._claims.add_handlers(
            on_add=self._follow,
            on_update=lambda _, claim: self._follow(claim),
            on_delete=lambda claim: self._end(claim.key, None),
        )

    @property
    def is_ready(self) -> bool:
        """Whether the claims have synced."""
        return self._claims.has_synced

    @property
    def is_starting(self) -> bool:
        """Whether the claims are syncing. False while waiting for leader election."""
        return self._has_begun and not self.is_ready

    async def run(self) -> None:
        """Run until cancelled. Attaches are cancelled then, and nothing is detached.

        Can be run again, such as by `LeaderElector.run` after regaining the lease.
        """
        self._begin_anew()
        self._has_begun = True
        self._claims.start()
        try:
            await self._claims.wait_synced()
            await self._take_stock()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._tend_quarantine())
                await run_workers(self._queue, self._reconcile, self._settings.workers)
        finally:
            self._queue.shut_down()
            tasks = tuple(self._tasks.values())
            await cancel_and_wait(*tasks, ignore_errors=True)
            await self._claims.stop()

    async def recovered(self, device: DeviceId) -> None:
        """Release a quarantined device: it may be allocated again."""
        await self._quarantine.release(device)

    # --- event handlers ---

    def _wanted(self, claim: ResourceClaim | None) -> dict[Attachment, AttachRequest]:
        return attach_requests(claim, self.driver, self._settings.conditions)

    def _devices(self, claim: ResourceClaim) -> list[str]:
        return [_text(attachment.device) for attachment in self._wanted(claim)]

    def _follow(self, claim: ResourceClaim) -> None:
        key = claim.key
        self._end(key, claim)
        if self._wanted(claim):
            self._queue.add(key)

    def _end(self, key: ObjectKey, claim: ResourceClaim | None) -> None:
        """Mark attachments that ended immediately: the queue only shows the state at the time of reconciling."""
        known = self.known.of(key)
        if not known:
            return
        wanted = self._wanted(claim)
        for attachment, (phase, _) in tuple(known.items()):
            if attachment not in wanted and phase is not Phase.DETACHING:
                self.known.put(key, attachment, AttachmentState(Phase.ENDED))
        self._queue.add(key)

    async def _take_stock(self) -> None:
        """Find devices that were deallocated while no controller ran. Nothing is attached before that."""
        failures = 0
        while True:
            try:
                async with asyncio.timeout(self._settings.limits.detach_seconds):
                    found = tuple(await self._attacher.attached())
                break
            except Exception:
                failures += 1
                wait = self._settings.limits.wait_seconds(failures)
                log.exception("listing attached devices failed; retrying in %.1f s", wait)
                await self._clock.sleep(wait)
        held = []
        for claim in self._claims.list():
            for attachment in self._wanted(claim):
                held.append(attachment)
                self.known.put(claim.key, attachment, AttachmentState(Phase.FOUND))
        for attachment in orphans(found, held):
            log.info("%s: attached without a claim", attachment)
            self.known.put(NO_CLAIM, attachment, AttachmentState(Phase.ENDED))
            self._queue.add(NO_CLAIM)

    # --- reconciling ---

    async def _reconcile(self, key: ObjectKey) -> None:
        claim = self._claims.get(key)
        actions = decide(
            claim,
            self.driver,
            self.known.of(key),
            leaving=self._leaving(key, claim),
            owned=self._settings.conditions,
        )
        reports: dict[Attachment, DeviceReport] = {}
        for action in actions:
            match action:
                case Attach(request):
                    self._begin_attach(key, request)
                case Adopt(request, phase):
                    self.known.put(key, request.attachment, AttachmentState(phase))
                case Detach(attachment):
                    self._begin_detach(key, attachment)
                case WriteReport(attachment, report):
                    reports[attachment] = report
        if reports and claim is not None:
            await self._write(key, claim, reports)

    def _leaving(self, key: ObjectKey, claim: ResourceClaim | None) -> set[SharedDeviceId]:
        """Devices of the claim that are still being detached for other claims."""
        leaving = set()
        for attachment in self._wanted(claim):
            for other_key, other in self.known.of_device(attachment.device):
                phase = self.known.phase(other_key, other)
                is_over = phase in (Phase.ENDED, Phase.DETACHING)
                # Ended attachments are queued already; queueing them here could loop forever.
                if other_key != key and (
                    is_over or other not in self._wanted(self._claims.get(other_key))
                ):
                    leaving.add(attachment.device)
        return leaving

    async def _write(
        self, key: ObjectKey, claim: ResourceClaim, reports: dict[Attachment, DeviceReport]
    ) -> None:
        """Write with the resourceVersion that the decision was made on.

        The next version may have another allocation that looks the same. The informer delivers it, and
        with it the end of the attachments in between, before the next decision.
        """
        today = self._clock.today()
        wanted = with_reports(claim, self.driver, reports, today, self._settings.conditions)
        try:
            await self._client.update_status(RESOURCE_CLAIMS, wanted)
        except ApiStatusError as error:
            if error.is_conflict:
                self._queue.add_after(key, CONFLICT_SECONDS)
            elif not error.is_not_found:
                raise
        else:
            self._seen.claim_written(key, len(reports))

    # --- attaching ---

    def _begin_attach(self, key: ObjectKey, request: AttachRequest) -> None:
        attachment = request.attachment
        self.known.put(key, attachment, AttachmentState(Phase.ATTACHING))
        self._attaching_since[key, attachment] = self._clock.now()

        def report(reason: str, message: str) -> None:
            if self.known.phase(key, attachment) is Phase.ATTACHING:
                device_report = DeviceReport(False, reason, message)
                self.known.put(key, attachment, AttachmentState(Phase.ATTACHING, device_report))
                self._queue.add_after(key, self._settings.progress_seconds)

        report("Attaching", _place("being made ready", attachment))
        request = dataclasses.replace(request, report=report)
        self._start(key, attachment, self._attach(key, request))

    async def _attach(self, key: ObjectKey, request: AttachRequest) -> None:
        started = self._clock.now()
        outcome = AttachOutcome.CANCELLED
        self._seen.attach_started(request)
        try:
            failure = await attach_until_decided(
                self._attacher, request, self._attempt_context, self._lane(request.attachment)
            )
            if failure is None:
                outcome = AttachOutcome.READY
                known = AttachmentState(
                    Phase.ATTACHED,
                    DeviceReport(True, "Attached", _place("ready", request.attachment)),
                )
            else:
                log.warning("%s: %s", request, failure)
                await self._isolate(request.attachment.whole_device, str(failure))
                outcome = AttachOutcome.FAILED
                known = AttachmentState(Phase.FAILED, self._failed(request, failure))
            if self.known.phase(key, request.attachment) is Phase.ATTACHING:
                self.known.put(key, request.attachment, known)
                self._queue.add(key)
            else:
                outcome = AttachOutcome.CANCELLED
        finally:
            self._seen.attach_ended(request, outcome, self._clock.now() - started)

    def _failed(self, request: AttachRequest, failure: AttachFailedError) -> DeviceReport:
        condition = failure_condition(request, failure.condition, self._settings.failure_condition)
        return DeviceReport(False, failure.reason, failure.message, condition)

    async def _isolate(self, device: DeviceId, reason: str) -> None:
        """Quarantine a device. The failure is reported even if this fails: the claim must not wait for it."""
        for attempt in range(1, QUARANTINE_ATTEMPTS + 1):
            try:
                await self._quarantine.isolate(device, reason)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                log_failure(log, error, "%s: could not be quarantined", device)
                if attempt == QUARANTINE_ATTEMPTS:
                    self._seen.quarantined(device, str(error) or type(error).__name__)
                    return
                await self._clock.sleep(WRITE_BACKOFF.seconds(attempt, 0.0))
            else:
                self._seen.quarantined(device, "")
                return

    # --- detaching ---

    def _begin_detach(self, key: ObjectKey, attachment: Attachment) -> None:
        attaching = self._tasks.pop((key, attachment), None)
        self.known.put(key, attachment, AttachmentState(Phase.DETACHING))
        self._start(key, attachment, self._detach(key, attachment, attaching))

    async def _detach(
        self, key: ObjectKey, attachment: Attachment, attaching: asyncio.Task[None] | None
    ) -> None:
        if attaching is not None:
            hung_seconds = self._clock.now() - self._attaching_since[key, attachment]
            attaching.cancel()
            await asyncio.wait((attaching,))
            await self._isolate_if_hung(attachment, hung_seconds)
        self._attaching_since.pop((key, attachment), None)
        started = self._clock.now()
        await detach_until_done(
            self._attacher, attachment, self._attempt_context, self._lane(attachment)
        )
        self.known.drop(key, attachment)
        self._seen.detach_ended(attachment, self._clock.now() - started)
        self._queue.add(key)
        for waiting in self._claims.by_index(_BY_DEVICE, _text(attachment.device)):
            self._queue.add(waiting.key)

    async def _isolate_if_hung(self, attachment: Attachment, seconds: float) -> None:
        limit = self._settings.hang_seconds
        if limit is not None and seconds >= limit:
            log.warning("%s: hung, deallocated after %.0f s", attachment, seconds)
            await self._isolate(
                attachment.whole_device, f"AttachHung: not ready after {seconds:.0f} s"
            )

    # --- tasks ---

    def _lane(self, attachment: Attachment) -> asyncio.Lock:
        return self._lanes.setdefault(attachment.device, asyncio.Lock())

    def _start(
        self, key: ObjectKey, attachment: Attachment, work: Coroutine[None, None, None]
    ) -> None:
        task = asyncio.create_task(work, name=f"{attachment} of {key}")
        self._tasks[key, attachment] = task

        def ended(task: asyncio.Task[None]) -> None:
            if self._tasks.get((key, attachment)) is task:
                del self._tasks[key, attachment]
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("%s of %s: unexpected exception", attachment, key, exc_info=error)

        task.add_done_callback(ended)

    async def _tend_quarantine(self) -> None:
        failures = 0
        while True:
            try:
                await self._quarantine.run()
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                failures += 1
                log_failure(log, error, "quarantine failed; retrying")
                await self._clock.sleep(WRITE_BACKOFF.seconds(failures, 0.0))


def _text(device: SharedDeviceId) -> str:
    return "|".join(device)


def _place(what: str, attachment: Attachment) -> str:
    return f"{what} on {attachment.node}" if attachment.node else what
