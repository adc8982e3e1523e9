"""Annotations that admission adds to the audit event of a request."""

from __future__ import annotations

from contextvars import ContextVar

ANNOTATIONS: ContextVar[dict[str, str] | None] = ContextVar("audit_annotations", default=None)
"""Those of the request that is being answered; None if it is not audited."""
