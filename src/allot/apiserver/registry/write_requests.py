"""What strategies and validation are told about the request of a write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from allot.apiserver.kinds.request import RequestInfo, WriteRequest
from allot.apiserver.pacing import cpu_deadline
from allot.apiserver.registry.generated_names import new_name_suffix
from allot.apiserver.registry.uids import new_uid
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.deadline import Deadline
from allot.features import FeatureGates
from allot.validation.expressions import ExpressionChecker

EXPRESSION_SECONDS: Final = 2.0
"""CPU time of the rules and patterns that run on one object."""


class WriteRequests:
    """Makes the requests of one API server."""

    def __init__(
        self,
        gates: FeatureGates,
        expressions: ExpressionChecker,
        clock: Callable[[], datetime],
    ) -> None:
        self._gates = gates
        self._expressions = expressions
        self._clock = clock

    def make(
        self,
        info: RequestInfo,
        namespace: str,
        home: StoredObject | None,
        stored_size: int = 0,
    ) -> WriteRequest:
        """`home` is the stored namespace, None for kinds that have none."""
        return WriteRequest(
            gates=self._gates,
            version=info.version,
            expressions=self._expressions,
            now=self._clock(),
            new_name_suffix=new_name_suffix,
            caller=info.caller,
            verb=info.verb,
            namespace=namespace,
            namespace_labels=home.object.metadata.labels if home is not None else {},
            new_deadline=new_deadline,
            new_uid=new_uid,
            warnings=[],
            stored_size=stored_size,
            subresource=info.subresource,
            dry_run=info.dry_run,
        )


def new_deadline() -> Deadline:
    """The deadline of the rules and patterns that run on one object."""
    return cpu_deadline(EXPRESSION_SECONDS)
