"""What a scenario leaves behind, and how it is removed."""

from __future__ import annotations

from tests.acceptance.runner.paths import Json
from tests.acceptance.runner.resources import RESOURCE_BY_KIND, path_of_reference
from tests.acceptance.runner.rest import MERGE_PATCH, RestClient


class Traces:
    """Namespaces and objects outside of namespaces, to be removed whatever state they are in."""

    def __init__(self, client: RestClient, driver: str) -> None:
        self._client = client
        self._driver = driver
        self._names_by_kind: dict[str, list[str]] = {"Namespace": [], "Node": []}

    def add(self, document: Json) -> None:
        """Objects in namespaces go with these, and reviews are not stored."""
        kind, name = document.get("kind"), document.get("metadata", {}).get("name")
        resource = RESOURCE_BY_KIND.get(kind)
        if name and resource is not None and not resource.is_namespaced:
            self._names_by_kind.setdefault(kind, []).append(name)

    def remove(self) -> None:
        """Answers do not count: much of this may be gone, and the scenario has been judged."""
        others = dict(self._names_by_kind)
        namespaces, nodes = others.pop("Namespace"), others.pop("Node")
        for namespace in namespaces:
            self._remove_namespace(namespace)
        for kind, names in others.items():
            for name in names:
                self._delete(f"{RESOURCE_BY_KIND[kind].name}/{name}")
        selector = {"fieldSelector": f"spec.driver={self._driver}"}
        self._client.request("DELETE", path_of_reference("resourceslices", ""), query=selector)
        for name in nodes:
            self._delete(f"nodes/{name}")

    def _remove_namespace(self, namespace: str) -> None:
        """What makes pods goes before them; what waits for finalizers is let go."""
        for resource in ("deployments", "jobs"):
            self._delete(f"{resource}@{namespace}", propagationPolicy="Background")
        self._delete(f"pods@{namespace}", gracePeriodSeconds="0")
        config_maps = path_of_reference("configmaps", namespace)
        listing = self._client.request("GET", config_maps)
        for each in [] if listing.is_error else listing.body["items"]:
            if each["metadata"].get("finalizers"):
                path = f"{config_maps}/{each['metadata']['name']}"
                release = {"metadata": {"finalizers": None}}
                self._client.request("PATCH", path, body=release, content_type=MERGE_PATCH)
        self._delete(f"namespaces/{namespace}")

    def _delete(self, reference: str, **query: str) -> None:
        self._client.request("DELETE", path_of_reference(reference, ""), query=query)
