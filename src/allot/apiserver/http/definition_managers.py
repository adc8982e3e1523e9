"""managedFields of CustomResourceDefinitions whose status the server writes itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from allot.api.times import written_time
from allot.apiserver.http.field_managers import field_manager_of, updated_object
from allot.apiserver.http.field_tracking import Managers
from allot.apiserver.http.routes import Target
from allot.apiserver.registry.custom_definitions import MANAGER
from allot.apiserver.watch_cache.caches import resource_named


def definition_managers(new: Any, old: Any, now: datetime) -> Managers:
    """The managers after the server changed the status of a definition."""
    resource = resource_named("apiextensions.k8s.io", "customresourcedefinitions")
    target = Target(resource, "v1", subresource=resource.subresource("status"))
    return tuple(
        field_manager_of(target).updated(
            updated_object(new, old, target),
            old.metadata.managed_fields,
            (),
            MANAGER,
            written_time(now),
        )
    )
