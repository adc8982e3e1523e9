"""Where the answers differ from Kubernetes v1.38's, by invocation, with the reason. At most ten."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}
