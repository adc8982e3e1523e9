"""Scripts: how they are written, and that devices do as they say."""

from __future__ import annotations

import asyncio

import pytest
import yaml

from allot.api.identities import SharedDeviceId
from allot.controllers.binding import AttachFailedError
from allot.controllers.binding.attachments import attach_requests
from allot.controllers.binding.simulation import (
    DeviceBehaviour,
    ScriptError,
    SimulatedAttacher,
    SimulatedFailure,
    parse_script,
    read_script,
)
from tests.unit.client.fakes import FakeClock
from tests.unit.controllers.binding.claims import DRIVER, allocated, attachment

(REQUEST,) = attach_requests(allocated("gpu-0"), DRIVER).values()


@pytest.mark.parametrize(
    ("text", "behaviours"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("ready", [DeviceBehaviour()], id="ready"),
        pytest.param("ready after 3s", [DeviceBehaviour(after_seconds=3)], id="delay"),
        pytest.param("ready after 1m30s;", [DeviceBehaviour(after_seconds=90)], id="minutes"),
        pytest.param("hang", [DeviceBehaviour(hang=True)], id="hang"),
        pytest.param("fail", [DeviceBehaviour(fail=SimulatedFailure("Broken"))], id="fail"),
        pytest.param(
            "fail LinkDown after 500ms",
            [DeviceBehaviour(after_seconds=0.5, fail=SimulatedFailure("LinkDown"))],
            id="fail-with-reason",
        ),
        pytest.param(
            "busy 2 times after 1s",
            [
                DeviceBehaviour(
                    after_seconds=1, fail=SimulatedFailure("Busy", permanent=False, times=2)
                )
            ],
            id="busy",
        ),
        pytest.param(
            "gpu-0: hang; rack-*/gpu-1 : ready after 1s detach after 2s; ready",
            [
                DeviceBehaviour(device="gpu-0", hang=True),
                DeviceBehaviour("rack-*", "gpu-1", 1, detach_seconds=2),
                DeviceBehaviour(),
            ],
            id="by-device",
        ),
    ],
)
def test_lines(text: str, behaviours: list[DeviceBehaviour]) -> None:
    assert parse_script(text) == tuple(behaviours)


@pytest.mark.parametrize(
    "text", ["sleep", "ready after", "ready after tomorrow", "ready after -1s", "busy", ": hang"]
)
def test_unreadable_lines(text: str) -> None:
    with pytest.raises(ScriptError):
        parse_script(text)


def test_yaml() -> None:
    document = yaml.safe_load("""\
behaviours:
- match: {pool: rack-2, device: gpu-*}
  after: 2s
  fail: {reason: LinkDown, message: no light}
- match: {device: gpu-0}
  hang: true
- after: 3s
  detachAfter: 1s
""")

    assert read_script(document) == (
        DeviceBehaviour("rack-2", "gpu-*", 2, SimulatedFailure("LinkDown", "no light")),
        DeviceBehaviour(device="gpu-0", hang=True),
        DeviceBehaviour(after_seconds=3, detach_seconds=1),
    )


@pytest.mark.parametrize(
    "document", [None, [], {"behaviours": [{"afer": "3s"}]}, {"behaviours": [{"after": "3 days"}]}]
)
def test_unreadable_yaml(document: object) -> None:
    with pytest.raises(ScriptError):
        read_script(document)


def test_the_first_rule_that_matches_counts() -> None:
    attacher = SimulatedAttacher(parse_script("b/gpu-0: hang; gpu-*: ready after 1s; fail"))

    def behaviour(pool: str, device: str) -> str:
        return str(attacher.behaviour(SharedDeviceId(DRIVER, pool, device)))

    assert behaviour("b", "gpu-0") == "hang"
    assert behaviour("a", "gpu-0") == "ready after 1s"
    assert behaviour("a", "fpga") == "fail Broken"
    assert str(SimulatedAttacher().behaviour(SharedDeviceId(DRIVER, "a", "x"))) == "ready"


def test_devices_do_as_they_are_told() -> None:
    async def main() -> None:
        clock = FakeClock(hasty=True)
        said: list[str] = []
        busy = SimulatedAttacher(
            parse_script("busy 1 time after 2s detach after 5s"), clock=clock, report=said.append
        )
        with pytest.raises(AttachFailedError) as failure:
            await busy.attach(REQUEST)
        assert not failure.value.permanent
        await busy.attach(REQUEST)
        assert list(await busy.attached()) == [attachment()]
        await busy.detach(attachment())
        await busy.detach(attachment())
        assert list(await busy.attached()) == []
        assert clock.slept == [2, 2, 5]
        assert [line.rpartition(": ")[2] for line in said] == [
            "Busy 1 times after 2s, then ready after 2s",
            "Busy 1 times after 2s, then ready after 2s",
            "ready",
            "detached",
        ]

        with pytest.raises(AttachFailedError) as failure:
            await SimulatedAttacher(parse_script("fail LinkDown")).attach(REQUEST)
        assert (failure.value.reason, failure.value.permanent) == ("LinkDown", True)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await SimulatedAttacher(parse_script("hang")).attach(REQUEST)

    asyncio.run(main())
