"""How reports get into the status, and what else stays as it was."""

from __future__ import annotations

from datetime import timedelta

from allot.api.base import replace
from allot.api.claims import AllocatedDeviceStatus
from allot.api.meta import Condition
from allot.controllers.binding.attachments import attach_requests
from allot.controllers.binding.conditions import (
    MAX_MESSAGE,
    DeviceReport,
    failure_condition,
    has_failed,
    is_ready,
    with_reports,
)
from allot.validation.conditions import validate_conditions
from allot.validation.fields import FieldPath
from tests.unit.controllers.binding.claims import (
    DRIVER,
    FAILED,
    READY,
    START,
    a_result,
    a_status,
    allocated,
    attachment,
    free,
)

LATER = START + timedelta(seconds=60, microseconds=5)
DONE = DeviceReport(True, "Attached", "ready on n0")
SHARE = "0a0b0c0d-0000-4000-8000-000000000000"


def test_a_first_report_makes_the_entry() -> None:
    claim = with_reports(allocated("gpu-0"), DRIVER, {attachment(): DONE}, LATER)

    moment = LATER.replace(microsecond=0)
    condition = Condition(READY, "True", 1, moment, "Attached", "ready on n0")
    assert claim.status.devices == (
        AllocatedDeviceStatus(DRIVER, "rack", "gpu-0", None, (condition,)),
    )


def test_what_is_said_already_changes_nothing() -> None:
    once = with_reports(allocated("gpu-0"), DRIVER, {attachment(): DONE}, LATER)

    assert with_reports(once, DRIVER, {attachment(): DONE}, LATER + timedelta(days=1)) is once


def test_times_change_with_the_status_only() -> None:
    claim = allocated("gpu-0", statuses=(a_status(Ready="False"),))

    busy = with_reports(claim, DRIVER, {attachment(): DeviceReport(False, "Busy")}, LATER)
    done = with_reports(busy, DRIVER, {attachment(): DONE}, LATER)

    assert busy.status.devices[0].conditions[0].reason == "Busy"
    assert busy.status.devices[0].conditions[0].last_transition_time == START
    assert done.status.devices[0].conditions[0].last_transition_time == LATER.replace(microsecond=0)


def test_others_keep_their_entries_and_conditions() -> None:
    other = a_status("gpu-0", driver="other.example.com", Ready="False")
    mine = a_status("gpu-0", Healthy="True")
    claim = allocated(
        "gpu-0", a_result("gpu-0", driver="other.example.com"), statuses=(other, mine)
    )

    wanted = with_reports(claim, DRIVER, {attachment(): DONE}, LATER)

    assert wanted.status.devices[0] is other
    healthy, ready = wanted.status.devices[1].conditions
    assert healthy is mine.conditions[0]
    assert (ready.type, ready.status) == (READY, "True")
    assert wanted.status.allocation is claim.status.allocation


def test_shares_have_entries_of_their_own() -> None:
    claim = allocated(a_result("gpu-0", share_id=SHARE), statuses=(a_status(Ready="False"),))
    share = attachment()._replace(device=attachment().device._replace(share_id=SHARE))

    wanted = with_reports(claim, DRIVER, {share: DONE}, LATER)

    whole, mine = wanted.status.devices
    assert whole == claim.status.devices[0]
    assert mine.share_id == SHARE


def test_reports_on_what_is_over_are_left_out() -> None:
    for claim in (
        free(),
        allocated("gpu-1"),
        allocated("gpu-0", uid="u1"),
        allocated("gpu-0", node="n1"),
        allocated("gpu-0", at=1),
    ):
        assert with_reports(claim, DRIVER, {attachment(): DONE}, LATER) is claim


def test_a_failure_sets_one_failure_condition() -> None:
    result = a_result("gpu-0", binding_failure_conditions=(FAILED, "Unreachable"))
    claim = allocated(result)
    (request,) = attach_requests(claim, DRIVER).values()

    failed = with_reports(
        claim, DRIVER, {attachment(): DeviceReport(False, "LinkDown", "dark", "Unreachable")}, LATER
    )

    conditions = {one.type: one.status for one in failed.status.devices[0].conditions}
    assert conditions == {READY: "False", "Unreachable": "True"}
    assert has_failed(failed, request)
    assert not is_ready(failed, request)
    assert not has_failed(claim, request)
    assert failure_condition(request) == FAILED
    assert failure_condition(request, "", "Unreachable") == "Unreachable"
    assert failure_condition(request, "an unrelated reason") == FAILED


def test_ready_means_all_conditions() -> None:
    claim = allocated(a_result("gpu-0", binding_conditions=(READY, f"{DRIVER}/Programmed")))
    (request,) = attach_requests(claim, DRIVER).values()
    half = replace(claim, status=replace(claim.status, devices=(a_status(Ready="True"),)))

    assert not is_ready(claim, request)
    assert not is_ready(half, request)
    assert is_ready(with_reports(claim, DRIVER, {attachment(): DONE}, LATER), request)


def test_the_api_takes_whatever_a_driver_says() -> None:
    for reason in ("", "two words", "1st", "ends-with:", "ü" * 3000, "x" * 3000):
        report = DeviceReport(False, reason, "m" * 100_000)
        claim = with_reports(allocated("gpu-0"), DRIVER, {attachment(): report}, LATER)

        conditions = claim.status.devices[0].conditions
        assert list(validate_conditions(conditions, FieldPath("c"), 8)) == []
        assert len(conditions[0].message) == MAX_MESSAGE
