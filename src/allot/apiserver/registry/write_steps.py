"""What the writes of one kind to one resource have to go through: decided once, read by every write."""

from __future__ import annotations

import msgspec

from allot.apiserver.admission.chain import Admission, Chain
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.begin_hooks import BeginHook, BeginHooks
from allot.apiserver.registry.conversion import is_converted
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.codecs import storage_codec


class WriteSteps(msgspec.Struct, frozen=True):
    """The steps of creates, of updates or of deletes."""

    resource: Resource
    codec: Codec
    """How objects are stored."""
    admission: Chain
    hooks: tuple[BeginHook, ...]
    is_converted: bool
    """Whether a webhook converts objects to the version they are stored in."""


def write_steps(
    operation: str, admission: Admission, hooks: BeginHooks, resource: Resource
) -> WriteSteps:
    return WriteSteps(
        resource,
        storage_codec(resource),
        admission.chain(operation, resource),
        hooks.of(operation, resource),
        is_converted(resource),
    )
