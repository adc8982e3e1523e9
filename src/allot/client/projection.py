"""In which form objects are asked for: whole, or nothing but their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from allot.client.transport import JSON


class Form(NamedTuple):
    """The headers that ask for it; None asks for the objects themselves."""

    headers: Mapping[str, str] | None = None
    """Of one object, or of a watch."""
    list_headers: Mapping[str, str] | None = None


def _only(kind: str) -> Mapping[str, str]:
    # A server that cannot do it sends the whole object, which has the metadata as well.
    return {"Accept": f"{JSON};as={kind};g=meta.k8s.io;v=v1,{JSON}"}


WHOLE: Final = Form()
METADATA: Final = Form(_only("PartialObjectMetadata"), _only("PartialObjectMetadataList"))
