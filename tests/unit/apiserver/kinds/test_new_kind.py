"""A new kind is one row of the table of kinds and, if anything is special about it, one definition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from allot.api.kinds import KINDS, Kind
from allot.api.raw import RawObject
from allot.apiserver import kinds
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.kinds.resources import RESOURCES, definition_of, module_of, resource_for
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table
from allot.testing.servers import LocalServer
from allot.validation.fields import FieldError, FieldPath, invalid

ROW = Kind("example.com", "Widget", "widgets", short_names=("wd",), categories=("all",))


def validate_widget(widget: RawObject) -> Iterator[FieldError]:
    size = widget.get("spec", "size", default=0)
    if size > 10:
        yield invalid(FieldPath("spec") / "size", size, "must be at most 10")


def widget_defaults(widget: Data) -> Data:
    return change(widget, "spec", lambda spec: fill(spec, size=1))


def widget_row(widget: RawObject, age: Age) -> list[Cell]:
    return [widget.metadata.name, widget.get("spec", "size", default=0)]


DEFINITION = KindDefinition(
    strategy=partial(
        RawStrategy, KindRules(validate=validate_widget, status={}, generation=COUNTED)
    ),
    defaults=widget_defaults,
    table=Table((NAME, Column("Size", "integer")), widget_row),
    subresources=(STATUS,),
    selectable_fields={"spec.color": "spec.color"},
    schema="""Widget kind list
  metadata meta.v1.ObjectMeta default={}
  spec     WidgetSpec default={}
  status   raw

WidgetSpec
  color string
  size  int32
""",
)
PATH = "/apis/example.com/v1/namespaces/default/widgets"


def a_widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
def server() -> LocalServer:
    return LocalServer(resources=(*RESOURCES, resource_for(ROW, DEFINITION)))


def test_a_kind_with_a_row_and_a_definition_is_served(server: LocalServer) -> None:
    async def run() -> None:
        async with server:
            created = await server.post(PATH, a_widget("a", color="red"))
            assert created["spec"] == {"color": "red", "size": 1}, "defaults"
            assert created["metadata"]["generation"] == 1
            await server.post(PATH, a_widget("b", color="blue", size=7))
            assert await server.get(f"{PATH}/a") == created

            too_large = await server.ask("POST", PATH, a_widget("c", size=11))
            assert (too_large.code, too_large.json["message"]) == (
                422,
                'Widget.example.com "c" is invalid: spec.size: Invalid value: 11: must be at most 10',
            )
            wrong = await server.ask("POST", PATH, a_widget("c", size="large"))
            assert wrong.code == 400, "the schema is checked"
            strict = await server.ask(
                "POST", PATH, a_widget("c", colour="red"), query={"fieldValidation": "Strict"}
            )
            assert 'unknown field "spec.colour"' in strict.json["message"]

            listed = await server.get(PATH)
            assert listed["kind"] == "WidgetList"
            assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
            red = await server.ask("GET", PATH, query={"fieldSelector": "spec.color=red"})
            assert [item["metadata"]["name"] for item in red.json["items"]] == ["a"]

            status = await server.ask(
                "PUT", f"{PATH}/a/status", {**created, "status": {"ready": True}}
            )
            assert status.json["status"] == {"ready": True}
            table = await server.ask(
                "GET", PATH, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
            )
            assert [row["cells"] for row in table.json["rows"]] == [["a", 1], ["b", 7]]

    asyncio.run(run())


def test_a_new_kind_is_in_discovery_and_openapi(server: LocalServer) -> None:
    async def run() -> None:
        async with server:
            found = await server.get("/apis/example.com/v1")
            widgets, status = found["resources"]
            assert (widgets["name"], widgets["kind"], widgets["shortNames"]) == (
                "widgets",
                "Widget",
                ["wd"],
            )
            assert status["name"] == "widgets/status"
            document = await server.get("/openapi/v3/apis/example.com/v1")
            schemas = document["components"]["schemas"]
            assert schemas["com.example.v1.WidgetSpec"]["properties"]["size"]["type"] == "integer"
            assert f"{PATH.replace('default', '{namespace}')}/{{name}}" in document["paths"]

    asyncio.run(run())


def test_a_new_kind_can_be_watched(server: LocalServer) -> None:
    async def run() -> None:
        async with server, server.watch(PATH) as watch:
            await server.post(PATH, a_widget("a"))
            event = await watch.next()
            assert event is not None
            assert (event["type"], event["object"]["kind"]) == ("ADDED", "Widget")

    asyncio.run(run())


def test_a_row_alone_is_enough() -> None:
    row = Kind("example.com", "Gadget", "gadgets", namespaced=False)
    server = LocalServer(resources=(*RESOURCES, resource_for(row, definition_of(row))))

    async def run() -> None:
        async with server:
            path = "/apis/example.com/v1/gadgets"
            created = await server.post(path, {"metadata": {"name": "g"}, "spec": {"any": [1]}})
            assert created["spec"] == {"any": [1]}
            table = await server.ask(
                "GET", path, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
            )
            assert [column["name"] for column in table.json["columnDefinitions"]] == ["Name", "Age"]
            document = await server.get("/openapi/v3/apis/example.com/v1")
            assert "com.example.v1.Gadget" in document["components"]["schemas"]

    asyncio.run(run())


def test_every_definition_belongs_to_a_row() -> None:
    """A definition in a module that no kind is named after would never be read."""
    named_after_a_kind = {module_of(kind) for kind in KINDS}
    for module in iter_modules(kinds.__path__, f"{kinds.__name__}."):
        if hasattr(import_module(module.name), "DEFINITION"):
            assert module.name in named_after_a_kind
