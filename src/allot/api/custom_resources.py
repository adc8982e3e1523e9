"""CustomResourceDefinitions as far as servers and controllers need to look into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from allot.api.raw import RawObject

GROUP: Final = "apiextensions.k8s.io"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a CRD whose objects are being deleted."""

ESTABLISHED: Final = "Established"
NAMES_ACCEPTED: Final = "NamesAccepted"
TERMINATING: Final = "Terminating"
API_APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"


class CustomResourceDefinition(RawObject):
    """A definition of a kind."""

    @property
    def group(self) -> str:
        return str(self.get("spec", "group", default=""))

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that the spec asks for."""
        found: Mapping[str, Any] = self.get("spec", "names", default={})
        return found

    @property
    def accepted_names(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.get("status", "acceptedNames", default={})
        return found

    @property
    def versions(self) -> Sequence[Mapping[str, Any]]:
        found = self.get("spec", "versions", default=())
        if not isinstance(found, list):
            return ()
        return [version for version in found if isinstance(version, dict)]

    @property
    def storage_version(self) -> str:
        names = (each.get("name") for each in self.versions if each.get("storage"))
        return next((name for name in names if isinstance(name, str)), "")

    @property
    def has_webhook(self) -> bool:
        """Whether objects are converted between versions by a webhook."""
        return bool(self.get("spec", "conversion", "strategy") == "Webhook")

    @property
    def is_namespaced(self) -> bool:
        return bool(self.get("spec", "scope") == "Namespaced")
