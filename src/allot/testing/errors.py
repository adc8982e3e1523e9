"""Errors that tests see. Each says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from allot.api.similar_names import did_you_mean, similar_names


class WaitTimeoutError(AssertionError):
    """The object did not become what the test waits for. The message has its status, and why it is pending."""

    def __init__(
        self, seconds: float, what: str, found: Mapping[str, Any] | None, reason: str = ""
    ) -> None:
        shown = "it does not exist\n"
        if found is not None:
            shown = yaml.safe_dump(found.get("status", found), sort_keys=False)
        verdict = f"{reason}\n" if reason else ""
        super().__init__(f"timed out after {seconds:g} s waiting for {what}:\n{verdict}{shown}")


class UnservedKindError(LookupError):
    """The cluster does not serve the kind."""

    def __init__(self, kind: str, known: Iterable[str]) -> None:
        hint = did_you_mean(similar_names(kind, known))
        super().__init__(f"the cluster does not serve kind {kind}{hint}")


class NotInVirtualTimeError(AttributeError):
    """A cluster in virtual time has no socket."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a cluster in virtual time has no {name}: other programs cannot follow its clock. "
            "Use the methods of the fixture, or leave out virtual_time=True",
            name=name,
        )


class NotInRealTimeError(AttributeError):
    """Real time passes by itself."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} needs virtual time: mark the test with allot_cluster(virtual_time=True)",
            name=name,
        )
