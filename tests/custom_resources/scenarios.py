"""Sequences of requests about custom resources, each in a group and a namespace of its own.

`recording.py` has sent them to kube-apiserver v1.38; tests send the same to ours.
"""

from __future__ import annotations

from typing import Any

from tests.custom_resources.definitions import REQUESTS
from tests.custom_resources.steps import (
    APPLY,
    CRDS,
    JSON_PATCH,
    MERGE,
    PROTOBUF,
    STRATEGIC,
    TABLE,
    WIDGETS,
    YAML,
    Scenario,
    Step,
    crd,
    create,
    established,
    get,
    obj,
    schema_of,
    widget,
)

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
STATUS_AND_SCALE = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


def rule(expression: str, **more: Any) -> dict[str, Any]:
    return {"rule": expression, **more}


def ruled(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": list(rules)}


PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": obj(
        {
            "port": INTEGER,
            "protocol": {"type": "string", "default": "TCP"},
            "name": STRING,
        },
        required=["port"],
    ),
}

KITCHEN = schema_of(
    {
        "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "exact": {"type": "integer", "format": "int32", "multipleOf": 3},
        "ratio": {
            "type": "number",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 1,
            "exclusiveMaximum": True,
        },
        "name": {"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^[a-z]+$"},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
        "level": {"type": "integer", "enum": [1, 2, 3]},
        "flag": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"},
        "mail": {"type": "string", "format": "email"},
        "host": {"type": "string", "format": "hostname"},
        "four": {"type": "string", "format": "ipv4"},
        "six": {"type": "string", "format": "ipv6"},
        "net": {"type": "string", "format": "cidr"},
        "id": {"type": "string", "format": "uuid"},
        "link": {"type": "string", "format": "uri"},
        "blob": {"type": "string", "format": "byte"},
        "mac": {"type": "string", "format": "mac"},
        "shade": {"type": "string", "format": "hexcolor"},
        "paint": {"type": "string", "format": "color"},
        "ports": PORTS,
        "tags": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": STRING,
            "minItems": 1,
            "maxItems": 3,
        },
        "labels": obj(additionalProperties={"type": "string", "maxLength": 3}, maxProperties=2),
        "few": obj({"a": STRING, "b": STRING, "c": STRING}, minProperties=1, maxProperties=2),
        "target": {"x-kubernetes-int-or-string": True},
        "free": {"x-kubernetes-preserve-unknown-fields": True},
        "loose": obj({"a": INTEGER}, **{"x-kubernetes-preserve-unknown-fields": True}),
        "maybe": {"type": "string", "nullable": True},
        "either": obj({"a": STRING, "b": STRING}, oneOf=[{"required": ["a"]}, {"required": ["b"]}]),
        "some": obj({"a": STRING, "b": STRING}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
        "never": {"type": "string", "not": {"pattern": "x"}},
        "every": {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^a"}]},
        "strict": obj({"need": STRING, "also": INTEGER}, required=["need", "also"]),
        "grid": {"type": "array", "items": {"type": "array", "items": INTEGER}},
    },
)
KITCHEN["properties"]["status"] = obj({"replicas": INTEGER, "selector": STRING, "phase": STRING})

BAD_SPECS: dict[str, Any] = {
    "spec-string": "no",
    "spec-list": [],
    "spec-null": None,
    "wrong-types": {"replicas": "1", "name": 5, "flag": "yes", "ratio": "0.5", "mode": 7},
    "float-for-integer": {"replicas": 1.5},
    "whole-float": {"replicas": 2.0},
    "big-integer": {"exact": 3000000000},
    "minimum": {"replicas": -1},
    "maximum": {"replicas": 11},
    "multiple-of": {"exact": 4},
    "exclusive-minimum": {"ratio": 0},
    "exclusive-maximum": {"ratio": 1},
    "too-short": {"name": "a"},
    "too-long": {"name": "abcdefghi"},
    "pattern": {"name": "ABC"},
    "enum": {"mode": "middling"},
    "enum-integer": {"level": 4},
    "enum-type": {"level": "1"},
    "date-time": {"when": "yesterday"},
    "date": {"day": "2020-13-01"},
    "duration": {"wait": "5 parsecs"},
    "email": {"mail": "nobody"},
    "hostname": {"host": "-bad-"},
    "ipv4": {"four": "1.2.3"},
    "ipv6": {"six": "1.2.3.4"},
    "cidr": {"net": "10.0.0.0"},
    "uuid": {"id": "123"},
    "uri": {"link": ":::"},
    "byte": {"blob": "%%%"},
    "mac": {"mac": "zz"},
    "hexcolor": {"shade": "#ggg"},
    "map-list-duplicates": {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
    "map-list-missing-key": {"ports": [{"protocol": "UDP"}]},
    "map-list-string": {"ports": ["80"]},
    "map-list-null": {"ports": [None]},
    "set-duplicates": {"tags": ["a", "b", "a"]},
    "set-empty": {"tags": []},
    "set-too-many": {"tags": ["a", "b", "c", "d"]},
    "map-values": {"labels": {"a": "long"}},
    "map-value-type": {"labels": {"a": 1}},
    "map-too-many": {"labels": {"a": "1", "b": "2", "c": "3"}},
    "too-few-properties": {"few": {}},
    "too-many-properties": {"few": {"a": "1", "b": "2", "c": "3"}},
    "int-or-string": {"target": 1.5},
    "int-or-string-bool": {"target": True},
    "int-or-string-ok": {"target": "50%"},
    "loose-typed": {"loose": {"a": "x", "b": {"c": 1}}},
    "null-nullable": {"maybe": None},
    "null-not-nullable": {"name": None},
    "null-defaulted": {"replicas": None},
    "null-required": {"strict": {"need": None, "also": 1}},
    "one-of-none": {"either": {}},
    "one-of-both": {"either": {"a": "1", "b": "2"}},
    "any-of": {"some": {}},
    "not": {"never": "axb"},
    "all-of": {"every": "bc"},
    "required": {"strict": {}},
    "grid": {"grid": [[1, "2"], [3, None], "x"]},
    "unknown": {"surprise": 1, "few": {"a": "1", "z": 3}, "ports": [{"port": 1, "q": 2}]},
    "several": {"name": "A", "replicas": 99, "mode": "x", "tags": [], "target": []},
    "fine": {
        "replicas": 3,
        "exact": 6,
        "ratio": 0.5,
        "name": "abc",
        "mode": "fast",
        "level": 2,
        "flag": True,
        "when": "2020-01-01T00:00:00Z",
        "day": "2020-01-01",
        "wait": "1h2m",
        "mail": "a@b.example",
        "host": "a.example",
        "four": "1.2.3.4",
        "six": "::1",
        "net": "10.0.0.0/8",
        "id": "123e4567-e89b-12d3-a456-426614174000",
        "link": "https://a.example/b",
        "blob": "aGVsbG8=",
        "mac": "01:23:45:67:89:ab",
        "shade": "#fff",
        "paint": "anything",
        "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}],
        "tags": ["b", "a"],
        "labels": {"a": "1"},
        "few": {"a": "1"},
        "target": 5,
        "free": {"any": [1, "2", None]},
        "loose": {"a": 1, "b": {"c": 1}},
        "either": {"a": "1"},
        "some": {"b": "1"},
        "never": "abc",
        "every": "abc",
        "strict": {"need": "x", "also": 1},
        "grid": [[1, 2], []],
    },
}

SCENARIOS: dict[str, Scenario] = {
    f"crd-{name}": (Step("POST", CRDS, body),) for name, body in REQUESTS.items()
}

SCENARIOS["bad-specs"] = (
    *established(crd(KITCHEN)),
    *(create(spec, f"w-{name}") for name, spec in BAD_SPECS.items()),
    *(
        create(BAD_SPECS[name], f"strict-{name}", "?fieldValidation=Strict")
        for name in ("unknown", "fine", "loose-typed")
    ),
    create(BAD_SPECS["unknown"], "ignored", "?fieldValidation=Ignore"),
    Step("POST", WIDGETS, '{"apiVersion":"GRP/v1","kind":"Widget","metadata":{"name":"d"},'
         '"spec":{"replicas":1,"replicas":2}}'),
    Step("POST", WIDGETS + "?fieldValidation=Strict",
         '{"apiVersion":"GRP/v1","kind":"Widget","metadata":{"name":"d2"},'
         '"spec":{"replicas":1,"replicas":2}}'),
    create({}, "Bad_Name"),
    create({}, ""),
    create({}, "w", metadata={"name": "w", "bogus": 1, "labels": {"a": "b"}}),
    create({}, "w2", metadata={"name": "w2", "labels": {"a": 1}}),
    create({}, "w3", metadata={"name": "w3", "labels": {"a b": "c"}}),
    create({}, "w4", metadata={"name": "w4", "annotations": {"x": None}, "finalizers": ["a"]}),
    create({}, "w5", metadata={"name": "w5", "creationTimestamp": "soon"}),
    create({}, "w6", metadata={"name": "w6", "generation": 7, "uid": "u", "selfLink": "x"}),
    create({}, "w7", kind="Gadget"),
    create({}, "w9", metadata=None),
    create({}, "w10", status={"phase": "Odd", "extra": 1}, other=1),
    create({}, "w11", metadata={"generateName": "pre-"}),
    Step("POST", WIDGETS, "kind: Widget\napiVersion: GRP/v1\nmetadata: {name: yy}", YAML),
    Step("GET", WIDGETS, accept=PROTOBUF),
    Step("GET", WIDGETS, accept=f"{PROTOBUF},application/json"),
    Step("GET", f"{WIDGETS}/w", accept=YAML),
)  # fmt: skip

SCENARIOS["life"] = (
    *established(
        crd(
            KITCHEN,
            subresources=STATUS_AND_SCALE,
            names={
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "shortNames": ["wd", "wg"],
                "categories": ["all", "things"],
            },
            additionalPrinterColumns=[
                {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
                {"name": "Ports", "type": "string", "jsonPath": ".spec.ports[*].port"},
                {
                    "name": "Tagged",
                    "type": "string",
                    "jsonPath": '.spec.ports[?(@.protocol=="UDP")].name',
                    "description": "a filter",
                },
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                {"name": "When", "type": "date", "jsonPath": ".spec.when"},
                {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
                {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
                {"name": "Labels", "type": "string", "jsonPath": ".metadata.labels"},
                {"name": "Wrong", "type": "integer", "jsonPath": ".spec.name"},
                {"name": "Few", "type": "string", "jsonPath": ".spec.few"},
                {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
                {"name": "Tag", "type": "string", "jsonPath": ".spec.tags[0]"},
                {"name": "Last", "type": "string", "jsonPath": ".spec.tags[-1:]"},
                {"name": "Dotted", "type": "string", "jsonPath": ".metadata.labels.a\\.b/c"},
            ],
        )
    ),
    create(BAD_SPECS["fine"], status={"phase": "Sent", "replicas": 5}),
    get(),
    Step("GET", f"{WIDGETS}/w/status"),
    Step("GET", f"{WIDGETS}/w/scale"),
    Step("GET", WIDGETS, accept=TABLE),
    Step("GET", f"{WIDGETS}/w", accept=TABLE),
    Step("PATCH", f"{WIDGETS}/w/status", {"status": {"replicas": 2, "selector": "a=b", "x": 1},
                                          "spec": {"replicas": 9}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w/status", {"status": {"replicas": "two"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w/status", {"metadata": {"labels": {"from": "status"}}}, MERGE),
    Step("GET", f"{WIDGETS}/w/scale"),
    Step("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 40}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": -4}}, MERGE),
    Step("PUT", f"{WIDGETS}/w/scale", {"kind": "Scale", "apiVersion": "autoscaling/v1",
                                       "metadata": {"name": "w", "namespace": "NS"},
                                       "spec": {"replicas": 0}}),
    Step("GET", f"{WIDGETS}/w/scale"),
    get(),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"mode": "slow", "bogus": 1}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w?fieldValidation=Strict", {"spec": {"bogus": 1}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"metadata": {"labels": {"a.b/c": "d"}}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"status": {"phase": "ignored"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", [{"op": "replace", "path": "/spec/mode", "value": "fast"},
                                   {"op": "add", "path": "/spec/tags/-", "value": "c"}],
         JSON_PATCH),
    Step("PATCH", f"{WIDGETS}/w", [{"op": "test", "path": "/spec/mode", "value": "no"}],
         JSON_PATCH),
    Step("PATCH", f"{WIDGETS}/w", [{"op": "remove", "path": "/spec/nothing"}], JSON_PATCH),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"mode": "slow"}}, STRATEGIC),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"mode": "slow"}}, "application/json"),
    Step("PATCH", f"{WIDGETS}/w?dryRun=All", {"spec": {"mode": "slow"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"mode": "odd"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"replicas": None}}, MERGE),
    Step("PATCH", f"{WIDGETS}/none", {"spec": {}}, MERGE),
    Step("PUT", f"{WIDGETS}/w", widget({"replicas": 2})),
    Step("PUT", f"{WIDGETS}/w", widget({"replicas": 2}, metadata={"name": "w",
                                                                  "resourceVersion": "1"})),
    Step("PUT", f"{WIDGETS}/w", widget({"replicas": 2}, "other")),
    Step("PUT", f"{WIDGETS}/missing", widget({}, "missing")),
    Step("GET", f"{WIDGETS}?labelSelector=a.b/c%3Dd"),
    Step("GET", f"{WIDGETS}?fieldSelector=metadata.name%3Dw"),
    Step("GET", f"{WIDGETS}?fieldSelector=spec.mode%3Dslow"),
    Step("GET", "/apis/GRP/v1/widgets?limit=1"),
    Step("GET", "/apis/GRP/v1"),
    Step("GET", "/apis/GRP"),
    Step("GET", "/apis/GRP/v2/namespaces/NS/widgets"),
    Step("GET", "/apis/GRP/v1/widgets/w"),
    Step("POST", "/apis/GRP/v1/namespaces/NS/widgets/w/status", {}),
    Step("POST", "/apis/GRP/v1/namespaces/nowhere/widgets", widget({}, namespace="nowhere")),
    create({}),
    Step("DELETE", f"{WIDGETS}/w?dryRun=All"),
    Step("DELETE", f"{WIDGETS}/w"),
    Step("DELETE", f"{WIDGETS}/w"),
    create({}, "f", metadata={"name": "f", "finalizers": ["example.com/x"]}),
    Step("DELETE", f"{WIDGETS}/f"),
    Step("PATCH", f"{WIDGETS}/f", {"spec": {"mode": "slow"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/f", {"metadata": {"finalizers": None}}, MERGE),
    Step("GET", f"{WIDGETS}/f"),
    create({}, "x1"),
    create({}, "x2"),
    Step("DELETE", WIDGETS),
    Step("GET", WIDGETS, accept=TABLE),
)  # fmt: skip

CONFIG = {"replicas": 2, "ports": [{"port": 1, "name": "one"}], "tags": ["a"], "labels": {"k": "v"}}
SCENARIOS["apply"] = (
    *established(crd(KITCHEN, subresources=STATUS_AND_SCALE)),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a", widget(CONFIG), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=b",
         widget({"ports": [{"port": 2}], "tags": ["b"], "free": {"x": {"y": 1}}}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=b", widget({"replicas": 3}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=b&force=true", widget({"replicas": 3}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a", widget({"tags": ["c"]}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a", widget({"bogus": 1}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a", widget({"replicas": "x"}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a", widget({"replicas": 77}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a",
         widget({"ports": [{"port": 5}, {"port": 5, "protocol": "TCP"}]}), APPLY),
    Step("PATCH", f"{WIDGETS}/w?fieldManager=a", widget({"loose": {"a": 1, "q": {"r": 1}},
                                                         "target": "5"}), APPLY),
    Step("PATCH", f"{WIDGETS}/w", widget({}), APPLY),
    Step("PATCH", f"{WIDGETS}/w/status?fieldManager=s",
         {**widget(), "status": {"replicas": 1}}, APPLY),
    Step("PATCH", f"{WIDGETS}/w/scale?fieldManager=hpa",
         {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"},
          "spec": {"replicas": 6}}, APPLY),
    get(),
    create({"replicas": 1, "ports": [{"port": 9}]}, "c"),
    Step("PATCH", f"{WIDGETS}/c", {"spec": {"ports": [{"port": 9}, {"port": 10}]}}, MERGE),
    Step("PUT", f"{WIDGETS}/c?fieldManager=putter", widget({"replicas": 1}, "c")),
)  # fmt: skip

DEFAULTS = schema_of(
    {
        "a": {"type": "string", "default": "one"},
        "b": obj({"c": {"type": "integer", "default": 2}, "d": STRING}),
        "e": obj({"f": {"type": "string", "default": "g"}}, default={}),
        "list": {"type": "array", "items": obj({"x": {"type": "string", "default": "y"}})},
        "map": obj(additionalProperties=obj({"x": {"type": "integer", "default": 5}})),
        "nul": {"type": "string", "nullable": True, "default": "n"},
        "arr": {"type": "array", "items": INTEGER, "default": [1, 2]},
        "flag": {"type": "boolean", "default": False},
    },
    default={},
)
SCENARIOS["defaults"] = (
    *established(crd(DEFAULTS)),
    create(None),
    create({"b": {}, "list": [{}, {"x": "z"}], "map": {"k": {}}, "nul": None, "arr": None}, "x"),
    create({"a": None, "e": None, "b": {"c": None}}, "y"),
    Step("PATCH", f"{WIDGETS}/w", {"spec": None}, MERGE),
    Step("GET", WIDGETS),
    # A default that is added later shows in what was stored before.
    Step("PATCH", f"{CRDS}/widgets.GRP", [{
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/late",
        "value": {"type": "string", "default": "later"},
    }], JSON_PATCH),
    Step("GET", f"{WIDGETS}/w", until="later"),
    # And a field that is removed is pruned.
    Step("PATCH", f"{CRDS}/widgets.GRP", [{
        "op": "remove",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/flag",
    }], JSON_PATCH),
    Step("GET", f"{WIDGETS}/w", until='"arr":[1,2],"e":{"f":"g"},"late":"later"'),
)  # fmt: skip

PRUNING = obj(
    {
        "spec": obj(
            {
                "known": STRING,
                "open": obj({"a": obj({"b": STRING})},
                            **{"x-kubernetes-preserve-unknown-fields": True}),
                "list": {"type": "array", "items": obj({"x": STRING})},
                "map": obj(additionalProperties=obj({"x": STRING})),
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "closed": obj({"spec": obj({"x": STRING})},
                              **{"x-kubernetes-embedded-resource": True}),
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "empty": obj(),
            }
        )
    }
)  # fmt: skip
SCENARIOS["pruning"] = (
    *established(crd(PRUNING)),
    create(
        {
            "known": "k",
            "gone": 1,
            "open": {"a": {"b": "1", "gone": 1}, "kept": {"x": 1}},
            "list": [{"x": "1", "gone": 1}],
            "map": {"k": {"x": "1", "gone": 1}},
            "empty": {"gone": 1},
            "any": {"kept": [{"a": 1}]},
        },
        gone={"x": 1},
    ),
    create({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "x": 1},
                         "spec": {"q": 1}}}, "t"),
    create({"template": {"metadata": {"name": "p"}}}, "u"),
    create({"template": {"apiVersion": "v1", "kind": "Pod",
                         "metadata": {"name": "Bad_Name", "labels": {"a b": "c"}}}}, "v"),
    create({"template": {"apiVersion": "a/b/c", "kind": "po d"}}, "v2"),
    create({"template": {"apiVersion": "v1", "kind": 5}}, "v3"),
    create({"closed": {"apiVersion": "v1", "kind": "X", "spec": {"x": "1", "y": 1}, "z": 1}}, "x"),
    Step("POST", WIDGETS + "?fieldValidation=Strict",
         widget({"gone": 1, "list": [{"gone": 1}], "open": {"a": {"gone": 1}},
                 "closed": {"apiVersion": "v1", "kind": "X", "metadata": {"odd": 1}, "z": 1}},
                "s", gone=1)),
)  # fmt: skip

RULED = schema_of(
    {
        "min": INTEGER,
        "max": INTEGER,
        "name": ruled(
            {"type": "string", "maxLength": 20},
            rule("self != 'bad'", message="must not be bad"),
            rule("self.size() < 9", messageExpression="'too long: ' + self"),
            rule("self != 'req'", reason="FieldValueRequired", message="is required"),
            rule("self != 'forbid'", reason="FieldValueForbidden", message="is forbidden"),
            rule("self != 'dup'", reason="FieldValueDuplicate", message="is a duplicate"),
            rule("self != 'plain'"),
            rule("self != 'fails' || 1 / int(self.size() - 5) == 0"),
            rule("self != 'emptymsg'", messageExpression="''", message="fallback"),
            rule("self != 'emptyms2'", messageExpression="' '"),
        ),
        "fixed": ruled(STRING, rule("self == oldSelf", message="is immutable")),
        "once": ruled(
            STRING,
            rule("!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf=True,
                 message="set once"),
        ),
        "grows": ruled(INTEGER, rule("self >= oldSelf", message="must not shrink")),
        "items": ruled(
            {
                "type": "array",
                "maxItems": 10,
                "items": ruled({"type": "string", "maxLength": 10}, rule("self != 'x'")),
            },
            rule("self.all(i, i.startsWith('a'))", message="all must start with a"),
        ),
        "map": ruled(
            obj(additionalProperties=INTEGER, maxProperties=5),
            rule("self.all(k, self[k] > 0)", message="must be positive"),
        ),
        "keyed": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": obj(
                {"k": {"type": "string", "maxLength": 10},
                 "v": ruled(INTEGER, rule("self >= oldSelf", message="v must not shrink"))},
                required=["k"],
            ),
        },
        "when": ruled(
            {"type": "string", "format": "date-time"},
            rule("self > timestamp('2020-01-01T00:00:00Z')", message="too early"),
        ),
        "wait": ruled(
            {"type": "string", "format": "duration"},
            rule("self < duration('1h')", message="too long"),
        ),
        "either": ruled({"x-kubernetes-int-or-string": True},
                        rule("type(self) == int ? self > 1 : self != ''", message="odd")),
        "ratio": ruled({"type": "number"}, rule("self > 0.5", message="too small")),
        "opt": ruled(
            obj({"a": STRING, "b": STRING, "a-b": STRING}),
            rule("has(self.a) != has(self.b)", message="exactly one of a and b"),
            rule("!has(self.a__dash__b) || self.a__dash__b == 'q'", fieldPath=".a-b",
                 message="must be q"),
        ),
    },
    **{
        "x-kubernetes-validations": [
            rule("!has(self.min) || !has(self.max) || self.min <= self.max",
                 messageExpression="self.min > 5 ? 'min is large' : 'min above max'",
                 fieldPath=".min"),
        ]
    },
)  # fmt: skip
RULED_SPECS: tuple[dict[str, Any], ...] = (
    {"min": 1, "max": 2, "name": "ok"},
    {"min": 3, "max": 2},
    {"min": 7, "max": 2},
    {"name": "bad"},
    {"name": "much too long"},
    {"name": "req"},
    {"name": "forbid"},
    {"name": "dup"},
    {"name": "plain"},
    {"name": "fails"},
    {"name": "emptymsg"},
    {"name": "emptyms2"},
    {"items": ["a", "b"]},
    {"items": ["x"]},
    {"map": {"a": 0}},
    {"when": "2019-01-01T00:00:00Z"},
    {"wait": "2h"},
    {"either": 0},
    {"either": ""},
    {"ratio": 0.1},
    {"ratio": 1},
    {"opt": {}},
    {"opt": {"a": "1", "b": "2"}},
    {"opt": {"a": "1", "a-b": "r"}},
    {"name": 5, "min": 3, "max": 2},
)
SCENARIOS["rules"] = (
    *established(crd(RULED)),
    *(create(spec, f"r-{number}") for number, spec in enumerate(RULED_SPECS)),
    create({"fixed": "a", "once": "a", "grows": 5, "keyed": [{"k": "a", "v": 5}], "name": "ok"}),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"fixed": "b"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"fixed": None}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"fixed": "b"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"once": "b"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"grows": 4}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"grows": 6}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"keyed": [{"k": "b", "v": 0}, {"k": "a", "v": 4}]}},
         MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"name": "bad"}}, MERGE),
)  # fmt: skip

RATCHET = schema_of({"name": STRING, "other": STRING, "list": {"type": "array", "items": STRING},
                     "sub": obj({"x": STRING, "y": STRING})})  # fmt: skip


def tightened(path: str, value: Any) -> Step:
    return Step(
        "PATCH",
        f"{CRDS}/widgets.GRP",
        [
            {
                "op": "add",
                "path": f"/spec/versions/0/schema/openAPIV3Schema/properties/spec/{path}",
                "value": value,
            }
        ],
        JSON_PATCH,
    )


SCENARIOS["ratcheting"] = (
    *established(crd(RATCHET)),
    create({"name": "long name", "list": ["b", "c"], "sub": {"x": "1"}}),
    tightened("properties/name/maxLength", 3),
    tightened("properties/list/maxItems", 1),
    tightened("properties/sub/required", ["y"]),
    tightened("properties/other/x-kubernetes-validations", [rule("self == 'fine'")]),
    tightened("properties/name/x-kubernetes-validations", [rule("self == 'fine'")]),
    Step("POST", WIDGETS, widget({"name": "long"}, "probe"), until="were not checked"),
    Step("POST", WIDGETS, widget({"name": "long"}, "probe2"), until="were not checked"),
    Step("PATCH", f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"other": "x"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"other": "fine"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"name": "longer name"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"list": ["b", "c", "d"]}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"sub": {"x": "2"}}}, MERGE),
)

TWO = [
    {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of({"a": {"type": "string", "default": "one"},
                                                 "old": STRING})},
    },
    {
        "name": "v2",
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema_of({"a": {"type": "string", "default": "two"},
                                                 "new": STRING})},
        "additionalPrinterColumns": [{"name": "New", "type": "string", "jsonPath": ".spec.new"}],
    },
    {
        "name": "v1beta1",
        "served": True,
        "storage": False,
        "deprecated": True,
        "schema": {"openAPIV3Schema": schema_of({"a": STRING})},
    },
]  # fmt: skip
V2 = "/apis/GRP/v2/namespaces/NS/widgets"
SCENARIOS["versions"] = (
    *established(crd(versions=TWO)),
    create({"old": "o"}),
    Step("GET", f"{V2}/w"),
    Step("POST", V2, {**widget({"new": "n"}, "x"), "apiVersion": "GRP/v2"}),
    Step("GET", f"{WIDGETS}/x"),
    Step("GET", V2, accept=TABLE),
    Step("GET", WIDGETS),
    Step("GET", "/apis/GRP/v1beta1/namespaces/NS/widgets"),
    Step("PATCH", f"{V2}/w", {"spec": {"a": "three"}}, MERGE),
    get(),
    Step("GET", "/apis/GRP"),
    Step("PATCH", f"{CRDS}/widgets.GRP", [{"op": "replace", "path": "/spec/versions/0/storage",
                                           "value": False},
                                          {"op": "replace", "path": "/spec/versions/1/storage",
                                           "value": True}], JSON_PATCH),
    Step("GET", f"{CRDS}/widgets.GRP", until='"storedVersions":["v1","v2"]'),
    Step("PATCH", f"{CRDS}/widgets.GRP", [{"op": "remove", "path": "/spec/versions/0"}],
         JSON_PATCH),
    Step("PATCH", f"{CRDS}/widgets.GRP/status", {"status": {"storedVersions": ["v2"]}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP/status", {"status": {"storedVersions": ["v1"]}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP/status", {"status": {"storedVersions": []}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP/status", {"status": {"storedVersions": ["v2", "v9"]}},
         MERGE),
)  # fmt: skip

OTHER = crd()
OTHER["metadata"]["name"] = "gadgets.GRP"
OTHER["spec"]["names"] = {"plural": "gadgets", "kind": "Widget", "shortNames": ["wd"]}
SHORT = crd()
SHORT["metadata"]["name"] = "things.GRP"
SHORT["spec"]["names"] = {"plural": "things", "kind": "Thing", "shortNames": ["widgets", "tg"]}
FIRST = crd()
FIRST["spec"]["names"]["shortNames"] = ["wd"]
SCENARIOS["name-conflicts"] = (
    *established(FIRST),
    Step("POST", CRDS, OTHER),
    Step("GET", f"{CRDS}/gadgets.GRP", until='"NamesAccepted"'),
    Step("GET", "/apis/GRP/v1/namespaces/NS/gadgets"),
    Step("POST", CRDS, SHORT),
    Step("GET", f"{CRDS}/things.GRP", until='"NamesAccepted"'),
    Step("DELETE", f"{CRDS}/widgets.GRP"),
    Step("GET", f"{CRDS}/gadgets.GRP", until='"Established","status":"True"'),
    Step("GET", "/apis/GRP/v1/namespaces/NS/gadgets", until='"items":'),
    Step("GET", f"{CRDS}/gadgets.GRP", accept=TABLE),
)

SCENARIOS["crd-life"] = (
    *established(crd(schema_of({"x": STRING}))),
    create({"x": "1"}),
    Step("PUT", f"{CRDS}/widgets.GRP", crd(schema_of({"x": STRING}))),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"spec": {"scope": "Cluster"}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"spec": {"group": "other.example.com"}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"spec": {"names": {"kind": "Gizmo"}}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"spec": {"names": {"plural": "gizmos"}}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"spec": {"names": {"shortNames": ["wd"]}}}, MERGE),
    Step("GET", f"{CRDS}/widgets.GRP", until='"acceptedNames":{"plural":"widgets",'
         '"singular":"widget","shortNames":["wd"]'),
    Step("PATCH", f"{CRDS}/widgets.GRP", {"metadata": {"finalizers": None}}, MERGE),
    Step("GET", f"{CRDS}/widgets.GRP"),
    Step("GET", f"{CRDS}/widgets.GRP/status"),
    Step("GET", f"{CRDS}?fieldSelector=spec.group%3DGRP"),
    Step("GET", "/apis/apiextensions.k8s.io/v1"),
    create({"x": "1"}, "held", metadata={"name": "held", "finalizers": ["example.com/x"]}),
    Step("DELETE", f"{CRDS}/widgets.GRP"),
    Step("GET", f"{CRDS}/widgets.GRP", until="InstanceDeletionInProgress"),
    create({"x": "2"}, "late"),
    Step("GET", f"{WIDGETS}/held", until="deletionTimestamp"),
    Step("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, MERGE),
    Step("GET", f"{CRDS}/widgets.GRP", until='"code":404'),
    Step("GET", WIDGETS, until="404"),
    Step("GET", "/apis/GRP", until="404"),
)  # fmt: skip

CLUSTER = crd(schema_of({"x": STRING, "n": INTEGER, "b": {"type": "boolean"}}), scope="Cluster",
              selectableFields=[{"jsonPath": ".spec.x"}, {"jsonPath": ".spec.n"},
                                {"jsonPath": ".spec.b"}])  # fmt: skip
ALL = "/apis/GRP/v1/widgets"
SCENARIOS["cluster-scope"] = (
    *established(CLUSTER, ALL),
    Step("POST", ALL, widget({"x": "one", "n": 1, "b": True}, "a")),
    Step("POST", ALL, widget({"x": "two"}, "b")),
    Step("POST", ALL, widget({"x": "three"}, metadata={"name": "c", "namespace": "NS"})),
    Step("POST", WIDGETS, widget({})),
    Step("GET", f"{ALL}?fieldSelector=spec.x%3Done"),
    Step("GET", f"{ALL}?fieldSelector=spec.n%3D1"),
    Step("GET", f"{ALL}?fieldSelector=spec.b%3Dtrue"),
    Step("GET", f"{ALL}?fieldSelector=spec.n!%3D1"),
    Step("GET", f"{ALL}?fieldSelector=spec.y%3D1"),
    Step("GET", f"{ALL}/a"),
    Step("DELETE", f"{ALL}?fieldSelector=spec.x%3Done"),
    Step("GET", ALL),
)
