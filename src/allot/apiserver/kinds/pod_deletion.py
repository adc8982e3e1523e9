"""How long a pod has to stop when it is deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from allot.api.base import whole_seconds
from allot.api.core import Pod

DEFAULT_GRACE_SECONDS: Final = 30
LAST_MOMENT: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class PodDeletion(NamedTuple):
    """What a delete writes into the metadata; or, with `delete_now`, that nothing is waited for.

    Finalizers are not looked at: they hold back a pod that could go, too.
    """

    deletion_timestamp: datetime
    grace_period_seconds: int
    delete_now: bool


def graceful_delete(pod: Pod, grace_seconds: int | None, now: datetime) -> PodDeletion:
    """The answer to a delete with this grace period; without one, the pod's own.

    A pod that is not running, or has finished, is removed at once. A second delete can only shorten the
    time that is left.
    """
    if grace_seconds is not None and grace_seconds < 0:
        grace_seconds = 1
    begun = pod.metadata.deletion_timestamp
    if begun is not None:
        granted = pod.metadata.deletion_grace_period_seconds
        return _shortened(begun, granted, grace_seconds, now)
    seconds = grace_seconds
    if seconds is None:
        seconds = pod.get("spec", "terminationGracePeriodSeconds", default=DEFAULT_GRACE_SECONDS)
    if not pod.node_name or pod.is_finished:
        seconds = 0
    end = whole_seconds(_later(now, max(seconds, 0)))
    assert end is not None
    return PodDeletion(end, seconds, delete_now=seconds == 0)


def _shortened(end: datetime, granted: int | None, asked: int | None, now: datetime) -> PodDeletion:
    if not granted:  # only finalizers were waited for, if anything
        return PodDeletion(end, 0, delete_now=True)
    if asked is None or asked >= granted:
        return PodDeletion(end, granted, delete_now=False)
    # The deletion timestamp is the end of the grace period, not the time of the delete.
    new_end = _later(now, asked) if end >= LAST_MOMENT else _later(end, asked - granted)
    return PodDeletion(new_end, asked, delete_now=asked == 0)


def _later(moment: datetime, seconds: int) -> datetime:
    """So many seconds after `moment`. No pod waits longer than there are years with four digits."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LAST_MOMENT
