"""Steps of scenarios about CustomResourceDefinitions, and builders of what they send.

`GRP` in a path or body is the group of the scenario, `NS` its namespace.
"""

from __future__ import annotations

from typing import Any, NamedTuple

JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/GRP/v1/namespaces/NS/widgets"


class Step(NamedTuple):
    """One request; with `until`, repeated until the answer has this text."""

    method: str
    path: str
    body: Any = None
    type: str = JSON
    accept: str = JSON
    until: str = ""


Scenario = tuple[Step, ...]


def crd(schema: Any = None, *, versions: Any = None, **spec: Any) -> dict[str, Any]:
    """A CRD of namespaced Widgets."""
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    if schema is None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    extra: dict[str, Any] = {
        name: spec.pop(name)
        for name in ("subresources", "additionalPrinterColumns", "selectableFields")
        if name in spec
    }
    version |= {"schema": {"openAPIV3Schema": schema}, **extra}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.GRP"},
        "spec": {
            "group": "GRP",
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
            },
            "versions": versions or [version],
            **spec,
        },
    }


def schema_of(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A schema whose `spec` has these properties."""
    return {"type": "object", "properties": {"spec": obj(spec, **more)}}


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def widget(spec: Any = None, name: str = "w", **more: Any) -> dict[str, Any]:
    made = {"apiVersion": "GRP/v1", "kind": "Widget", "metadata": {"name": name}, **more}
    return made if spec is None else {**made, "spec": spec}


def established(definition: dict[str, Any], served: str = WIDGETS) -> tuple[Step, ...]:
    """Create a CRD and wait until it is served."""
    name = definition["metadata"]["name"]
    return (
        Step("POST", CRDS, definition),
        Step("GET", f"{CRDS}/{name}", until='"Established","status":"True"'),
        Step("GET", served, until='"items":'),
    )


def create(spec: Any = None, name: str = "w", query: str = "", **more: Any) -> Step:
    return Step("POST", WIDGETS + query, widget(spec, name, **more))


def get(name: str = "w") -> Step:
    return Step("GET", f"{WIDGETS}/{name}")
