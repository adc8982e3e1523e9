"""The form in which objects are requested: complete, or only their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from allot.client.transport import JSON


class Form(NamedTuple):
    """The Accept headers of the form; None for complete objects."""

    headers: Mapping[str, str] | None = None
    """For one object, or for a watch."""
    list_headers: Mapping[str, str] | None = None


def _only(kind: str) -> Mapping[str, str]:
    # A server without this form sends the complete object, which includes the metadata.
    return {"Accept": f"{JSON};as={kind};g=meta.k8s.io;v=v1,{JSON}"}


WHOLE: Final = Form()
METADATA: Final = Form(_only("PartialObjectMetadata"), _only("PartialObjectMetadataList"))
