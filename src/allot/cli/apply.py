"""Apply manifests to a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from allot.cli.errors import CommandError
from allot.cli.manifests import read_all

if TYPE_CHECKING:
    from allot.client.client import Client


async def apply_manifests(client: Client, sources: Sequence[str]) -> int:
    """Number of objects applied; `CommandError` for the first that cannot be read or is refused.

    Nothing is written before everything has been read.
    """
    from allot.client.apply import RefusedError, UnknownKindError, apply

    manifests = read_all(sources)
    try:
        await apply(client, [manifest.data for manifest in manifests])
    except (RefusedError, UnknownKindError) as error:
        source = next(each.source for each in manifests if each.data is error.document)
        raise CommandError(f"{source}: {error}") from error
    return len(manifests)
