"""Simulated devices with scripted behaviour: delays, failures, hangs. For demonstrations and tests.

In one line, where the first rule that matches a device applies:

    ready after 3s
    gpu-0: hang; rack-2/gpu-*: fail LinkDown after 2s; *: busy 2 times after 1s

or in YAML:

    behaviours:
    - match: {pool: rack-2, device: gpu-*}
      after: 2s
      fail: {reason: LinkDown, message: no light on the port}
    - match: {device: gpu-0}
      hang: true
    - after: 3s
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.durations import NANOSECONDS, parse_duration
from allot.api.identities import SharedDeviceId
from allot.client.clock import Clock, LoopClock
from allot.controllers.binding.attacher import Attacher, AttachFailedError
from allot.controllers.binding.attachments import Attachment, AttachRequest


class ScriptError(ValueError):
    """The script cannot be parsed. The message names the part and what is expected."""


class SimulatedFailure(NamedTuple):
    """How attaching fails. With `times`, only that many attempts fail."""

    reason: str
    message: str = "as the script says"
    permanent: bool = True
    times: int = 0


class DeviceBehaviour(NamedTuple):
    """How devices that match the patterns (as in a shell) behave while they are attached."""

    pool: str = "*"
    device: str = "*"
    after_seconds: float = 0.0
    fail: SimulatedFailure | None = None
    hang: bool = False
    detach_seconds: float = 0.0

    def matches(self, device: SharedDeviceId) -> bool:
        return fnmatchcase(device.pool, self.pool) and fnmatchcase(device.device, self.device)

    def __str__(self) -> str:
        after = f" after {self.after_seconds:g}s" if self.after_seconds else ""
        if self.hang:
            return "hang"
        if self.fail is None:
            return f"ready{after}"
        if self.fail.times:
            return f"{self.fail.reason} {self.fail.times} times{after}, then ready{after}"
        return f"fail {self.fail.reason}{after}"


READY_AT_ONCE: Final = DeviceBehaviour()


class SimulatedAttacher(Attacher):
    """Attaches nothing, with the delays of a script. `report` is called for every event."""

    def __init__(
        self,
        script: Iterable[DeviceBehaviour] = (),
        *,
        clock: Clock | None = None,
        report: Callable[[str], None] | None = None,
        attached: Iterable[Attachment] = (),
    ) -> None:
        self._script = tuple(script)
        self._clock: Clock = clock or LoopClock()
        self._report = report or (lambda _: None)
        self._attempts: dict[Attachment, int] = {}
        self.devices = dict.fromkeys(attached)
        """Attached devices, and devices being attached."""

    def behaviour(self, device: SharedDeviceId) -> DeviceBehaviour:
        return next((rule for rule in self._script if rule.matches(device)), READY_AT_ONCE)

    async def attach(self, device: AttachRequest) -> None:
        attachment = device.attachment
        behaviour = self.behaviour(attachment.device)
        attempt = self._attempts[attachment] = self._attempts.get(attachment, 0) + 1
        self.devices[attachment] = None
        self._report(f"{device}: attempt {attempt}: {behaviour}")
        device.report("Simulated", f"attempt {attempt}: {behaviour}")
        if behaviour.hang:
            await asyncio.Event().wait()
        await self._clock.sleep(behaviour.after_seconds)
        fail = behaviour.fail
        if fail is not None and (not fail.times or attempt <= fail.times):
            raise AttachFailedError(fail.reason, fail.message, permanent=fail.permanent)
        self._report(f"{device}: ready")

    async def detach(self, device: Attachment) -> None:
        if device in self.devices:
            await self._clock.sleep(self.behaviour(device.device).detach_seconds)
            del self.devices[device]
            self._report(f"{device}: detached")
        self._attempts.pop(device, None)

    async def attached(self) -> Iterable[Attachment]:
        return tuple(self.devices)


# --- scripts in one line ---

_RULE: Final = re.compile(r"(?:(?P<where>[^\s:]+)\s*:)?\s*(?P<what>.+)", re.ASCII).fullmatch
_WHAT: Final = re.compile(
    r"(?:(?P<ready>ready)"
    r"|(?P<hang>hang)"
    r"|fail(?:\s+(?P<reason>\w+))?"
    r"|busy\s+(?P<times>\d+)\s+times?)"
    r"(?:\s+after\s+(?P<after>\S+))?"
    r"(?:\s+detach\s+after\s+(?P<detach>\S+))?"
).fullmatch
WHAT: Final = "ready, hang, fail REASON or busy N times; then perhaps: after 3s"


def parse_script(text: str) -> tuple[DeviceBehaviour, ...]:
    """The behaviours in a line such as `gpu-0: hang; ready after 3s`."""
    return tuple(_rule(part.strip()) for part in text.split(";") if part.strip())


def _rule(text: str) -> DeviceBehaviour:
    rule = _RULE(text)
    what = _WHAT(rule["what"].strip()) if rule is not None else None
    if rule is None or what is None:
        raise ScriptError(f"{text!r}: expected {WHAT}")
    pool, _, device = (rule["where"] or "*").rpartition("/")
    fail = None
    if what["times"]:
        fail = SimulatedFailure("Busy", permanent=False, times=int(what["times"]))
    elif not what["ready"] and not what["hang"]:
        fail = SimulatedFailure(what["reason"] or "Broken")
    after, detach = _seconds(what["after"] or "0s"), _seconds(what["detach"] or "0s")
    return DeviceBehaviour(pool or "*", device, after, fail, bool(what["hang"]), detach)


def _seconds(text: str) -> float:
    nanoseconds = parse_duration(text)
    if nanoseconds is None or nanoseconds < 0:
        raise ScriptError(f"{text!r} is not a duration such as 3s, 500ms or 1m30s")
    return nanoseconds / NANOSECONDS


# --- scripts in YAML ---


class _Match(msgspec.Struct, forbid_unknown_fields=True):
    pool: str = "*"
    device: str = "*"


class _Fail(msgspec.Struct, forbid_unknown_fields=True):
    reason: str
    message: str = SimulatedFailure("").message
    permanent: bool = True
    times: int = 0


class _Behaviour(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    match: _Match = msgspec.field(default_factory=_Match)
    after: str = "0s"
    fail: _Fail | None = None
    hang: bool = False
    detach_after: str = "0s"


class _Script(msgspec.Struct, forbid_unknown_fields=True):
    behaviours: list[_Behaviour]


def read_script(document: Any) -> tuple[DeviceBehaviour, ...]:
    """The behaviours in a YAML document, already parsed."""
    try:
        script = msgspec.convert(document, _Script)
    except msgspec.ValidationError as error:
        raise ScriptError(str(error)) from None
    return tuple(
        DeviceBehaviour(
            rule.match.pool,
            rule.match.device,
            _seconds(rule.after),
            SimulatedFailure(*msgspec.structs.astuple(rule.fail))
            if rule.fail is not None
            else None,
            rule.hang,
            _seconds(rule.detach_after),
        )
        for rule in script.behaviours
    )
