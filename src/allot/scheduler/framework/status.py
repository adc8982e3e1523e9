"""Status: the result of a plugin for a pod, or for a pod on a node."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec


class Code(Enum):
    """The codes of kube-scheduler."""

    __hash__ = object.__hash__  # codes are keys in every cycle, and Enum's takes a call in Python

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    """It does not fit, but might if other pods were gone."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """It does not fit, and evicting pods cannot change that."""
    WAIT = "Wait"
    SKIP = "Skip"
    """The plugin has nothing to do for this pod."""
    PENDING = "Pending"
    """It waits for something that is under way; an event of the plugin says when that is over."""


class Status(msgspec.Struct, frozen=True):
    """A code with its reasons. The framework fills in `plugin`."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = None
    ended_by: str = ""
    """The limit that ended the search for an answer, and where; empty if the answer is certain."""
    is_reported: bool = False
    """Whether a pod that is gated for it gets a condition and an event, if that takes long."""

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_rejection(self) -> bool:
        """Whether the pod was refused, as opposed to something having gone wrong."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same answer with its author."""
        return self if self.plugin == plugin else msgspec.structs.replace(self, plugin=plugin)


_REJECTIONS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})

SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)
WAIT: Final = Status(Code.WAIT)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str, ended_by: str = "", is_reported: bool = False) -> Status:
    return Status(Code.UNRESOLVABLE, reasons, ended_by=ended_by, is_reported=is_reported)


def pending(*reasons: str) -> Status:
    return Status(Code.PENDING, reasons)


def failed(error: BaseException) -> Status:
    """The plugin could not tell, because of `error`."""
    return Status(Code.ERROR, (str(error),), error=error)
