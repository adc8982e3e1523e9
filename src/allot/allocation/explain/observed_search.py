"""An observed search: for every alternative at its best moment, why each other device is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from allot.allocation.errors import AllocationError, StepsExhaustedError
from allot.allocation.explain.findings import Refusal, RequestReport
from allot.allocation.explain.reasons import AnyReason, ExpressionFailed
from allot.allocation.explain.refusals import refusal
from allot.allocation.requests import Alternative, PreparedRequest
from allot.allocation.search.attempt import AllocationAttempt
from allot.allocation.search.backtracking import BacktrackingSearch, SearchFrame
from allot.api.identities import DeviceId

_MAX_OBSERVED_STEPS: Final = 200
"""Steps of an observed search; more would only repeat the same reasons."""
REASON_WORK: Final = 8
"""Units of work to find why one device is refused."""


class _Observation(NamedTuple):
    found: int
    refusals: tuple[Refusal, ...]


class ObservedSearch(BacktrackingSearch):
    """A search that records why it backtracks."""

    def __init__(self, attempt: AllocationAttempt, requests: Sequence[PreparedRequest]) -> None:
        super().__init__(attempt, requests)
        self._best: dict[Alternative, _Observation] = {}
        self._satisfied: set[Alternative] = set()

    def _enter(self, request: int) -> bool:
        if request:
            self._satisfied.update(self.selected[:request])
        return super()._enter(request)

    def _fail(self, frame: SearchFrame) -> None:
        self._note(frame)
        super()._fail(frame)

    def observe(self) -> str:
        """Search until the steps are used up; returns the error that ended it, if any."""
        error_text = ""
        try:
            self.solve(_MAX_OBSERVED_STEPS)
        except AllocationError as error:
            error_text = str(error)
            if self.stack:
                self._note(self.stack[-1])
        except StepsExhaustedError:
            pass
        self.unwind()
        return error_text

    def unreached(self, request: PreparedRequest) -> Iterator[Alternative]:
        """Alternatives that were neither satisfied nor given up before the steps ended."""
        for alternative in request.alternatives:
            if alternative not in self._satisfied and alternative not in self._best:
                yield alternative

    def _note(self, frame: SearchFrame) -> None:
        alternative = frame.alternative
        if alternative is None or alternative in self._satisfied:
            return
        best = self._best.get(alternative)
        if best is None or best.found < frame.nth:
            self._best[alternative] = _Observation(frame.nth, self._refusals(alternative))

    def _refusals(self, alternative: Alternative) -> tuple[Refusal, ...]:
        """Why devices are refused now, including those the alternative has already."""
        attempt = self.attempt
        devices_by_reason: dict[AnyReason, list[DeviceId]] = {}
        for index, device in enumerate(attempt.devices):
            self._meter.spend(REASON_WORK)
            reason = refusal(attempt, alternative, index)
            if reason is not None:
                devices_by_reason.setdefault(reason, []).append(device.id)
        refusals = []
        for reason, devices in _merged_failures(devices_by_reason).items():
            self._meter.spend(1)
            refusals.append(Refusal(reason, tuple(devices)))
        return tuple(refusals)

    def reports(self, request: PreparedRequest, in_conflict: bool) -> Iterator[RequestReport]:
        """One report per alternative; those never reached are examined without picks."""
        for alternative in request.alternatives:
            if alternative in self._satisfied:
                observed = _Observation(alternative.count, ())
            else:
                observed = self._best.get(alternative) or _Observation(
                    0, self._refusals(alternative)
                )
            yield RequestReport(
                str(alternative.claim.key),
                alternative.label,
                # Mode All needs at least one device.
                max(alternative.count, 1) if alternative.wants_all else alternative.count,
                observed.found,
                observed.refusals,
                in_conflict,
            )


def _merged_failures(
    devices_by_reason: Mapping[AnyReason, list[DeviceId]],
) -> dict[AnyReason, list[DeviceId]]:
    """The reasons, with errors of one expression under one reason: some devices have similar names, others do not."""
    similar: dict[AnyReason, dict[str, None]] = {}
    for reason in devices_by_reason:
        if isinstance(reason, ExpressionFailed):
            names = similar.setdefault(replace(reason, similar=()), {})
            names.update(dict.fromkeys(reason.similar))
    merged: dict[AnyReason, list[DeviceId]] = {}
    for reason, devices in devices_by_reason.items():
        together = reason
        if isinstance(reason, ExpressionFailed):
            together = replace(reason, similar=tuple(similar[replace(reason, similar=())]))
        merged.setdefault(together, []).extend(devices)
    return merged
