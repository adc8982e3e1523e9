"""CRDs that are refused, or accepted with something to see: one request each."""

from __future__ import annotations

from typing import Any

from tests.custom_resources.steps import crd, obj, schema_of

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def changed(path: str, value: Any, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """A CRD with another value at a path; None removes it."""
    made = base or crd()
    target: Any = made
    *parents, last = path.split(".")
    for part in parents:
        target = target[int(part)] if part.isdigit() else target.setdefault(part, {})
    if isinstance(target, list):
        target[int(last)] = value
    elif value is None:
        target.pop(last, None)
    else:
        target[last] = value
    return made


def version(name: str, **more: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {"name": name, "served": True, "storage": False, "schema": schema, **more}


def field(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A CRD whose `spec.x` has this schema."""
    return crd(schema_of({"x": schema}, **more))


def rule(expression: str, **more: Any) -> list[dict[str, Any]]:
    return [{"rule": expression, **more}]


def ruled(schema: dict[str, Any], expression: str, **more: Any) -> dict[str, Any]:
    """A CRD whose `spec.x` has this schema and validation rule."""
    return field({**schema, "x-kubernetes-validations": rule(expression, **more)})


LIST_OF_OBJECTS = {"type": "array", "items": obj({"k": STRING})}

NAMES: dict[str, dict[str, Any]] = {
    "no-spec": changed("spec", None),
    "wrong-name": changed("metadata.name", "other.GRP"),
    "no-group": changed("spec.group", ""),
    "group-without-dot": changed("metadata.name", "widgets.one", changed("spec.group", "one")),
    "group-invalid": changed("metadata.name", "widgets.a_b.com", changed("spec.group", "a_b.com")),
    "no-plural": changed("spec.names.plural", ""),
    "plural-invalid": changed("spec.names.plural", "Wid_gets"),
    "no-kind": changed("spec.names.kind", ""),
    "kind-invalid": changed("spec.names.kind", "Wid get"),
    "kind-lower": changed("spec.names.kind", "widget"),
    "singular-invalid": changed("spec.names.singular", "Widget"),
    "list-kind-is-kind": changed("spec.names.listKind", "Widget"),
    "short-name-invalid": changed("spec.names.shortNames", ["w", "W!"]),
    "category-invalid": changed("spec.names.categories", ["all", "Not Good"]),
    "names-defaulted": changed("spec.names", {"plural": "widgets", "kind": "Widget"}),
    "scope-missing": changed("spec.scope", ""),
    "scope-unknown": changed("spec.scope", "Global"),
    "no-versions": changed("spec.versions", []),
    "two-storage": crd(versions=[version("v1", storage=True), version("v2", storage=True)]),
    "no-storage": crd(versions=[version("v1"), version("v2")]),
    "duplicate-versions": crd(versions=[version("v1", storage=True), version("v1")]),
    "version-invalid": crd(versions=[version("V 1", storage=True)]),
    "no-schema": crd(versions=[{"name": "v1", "served": True, "storage": True}]),
    "no-schema-2": crd(versions=[{"name": "v1", "served": True, "storage": True, "schema": {}}]),
    "not-served": crd(versions=[version("v1", storage=True, served=False)]),
    "preserve-unknown": changed("spec.preserveUnknownFields", True),
    "conversion-unknown": changed("spec.conversion", {"strategy": "Magic"}),
    "conversion-none": changed("spec.conversion", {"strategy": "None"}),
    "conversion-none-webhook": changed(
        "spec.conversion",
        {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
    ),
    "conversion-webhook-empty": changed("spec.conversion", {"strategy": "Webhook"}),
    "conversion-webhook-no-client": changed(
        "spec.conversion", {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    ),
    "conversion-webhook-url": changed(
        "spec.conversion",
        {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "http://example.com/x?a=b"},
            },
        },
    ),
    "conversion-webhook-versions": changed(
        "spec.conversion",
        {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["x/1", "v2"],
                "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 0}},
            },
        },
    ),
    "k8s-group-unapproved": changed(
        "metadata.name", "widgets.foo.k8s.io", changed("spec.group", "foo.k8s.io")
    ),
    "k8s-group-approved": changed(
        "metadata",
        {
            "name": "widgets.foo2.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/x/y/pull/1"},
        },
        changed("spec.group", "foo2.k8s.io"),
    ),
    "deprecated-warning": crd(
        versions=[version("v1", storage=True, deprecationWarning="soon gone")]
    ),
    "deprecated-warning-empty": crd(
        versions=[version("v1", storage=True, deprecated=True, deprecationWarning="")]
    ),
    "unknown-field": changed("spec.bogus", 1),
    "wrong-type": changed("spec.versions", "v1"),
    "status-sent": {**crd(), "status": {"storedVersions": ["v9"]}},
}

COLUMNS: dict[str, dict[str, Any]] = {
    "column-no-name": crd(
        additionalPrinterColumns=[{"name": "", "type": "string", "jsonPath": ".x"}]
    ),
    "column-no-path": crd(
        additionalPrinterColumns=[{"name": "X", "type": "string", "jsonPath": ""}]
    ),
    "column-bad-path": crd(
        additionalPrinterColumns=[{"name": "X", "type": "string", "jsonPath": "x[?"}]
    ),
    "column-no-dot": crd(
        additionalPrinterColumns=[{"name": "X", "type": "string", "jsonPath": "spec.x"}]
    ),
    "column-type": crd(additionalPrinterColumns=[{"name": "X", "type": "float", "jsonPath": ".x"}]),
    "column-no-type": crd(additionalPrinterColumns=[{"name": "X", "type": "", "jsonPath": ".x"}]),
    "column-format": crd(
        additionalPrinterColumns=[
            {"name": "X", "type": "integer", "format": "int7", "jsonPath": ".x"}
        ]
    ),
    "scale-empty": crd(subresources={"scale": {}}),
    "scale-paths": crd(
        subresources={
            "scale": {
                "specReplicasPath": ".x",
                "statusReplicasPath": ".spec.y",
                "labelSelectorPath": ".metadata.z",
            }
        }
    ),
    "scale-array": crd(
        subresources={
            "scale": {"specReplicasPath": ".spec.x[0]", "statusReplicasPath": ".status.y"}
        }
    ),
    "selectable-missing": crd(schema_of({"x": STRING}), selectableFields=[{"jsonPath": ".spec.y"}]),
    "selectable-array": crd(
        schema_of({"x": {"type": "array", "items": STRING}}),
        selectableFields=[{"jsonPath": ".spec.x"}],
    ),
    "selectable-twice": crd(
        schema_of({"x": STRING}),
        selectableFields=[{"jsonPath": ".spec.x"}, {"jsonPath": ".spec.x"}],
    ),
    "selectable-empty": crd(schema_of({"x": STRING}), selectableFields=[{"jsonPath": ""}]),
    "selectable-metadata": crd(
        schema_of({"x": STRING}), selectableFields=[{"jsonPath": ".metadata.name"}]
    ),
    "selectable-bad": crd(schema_of({"x": STRING}), selectableFields=[{"jsonPath": "spec.x"}]),
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "root-not-object": crd({"type": "string"}),
    "root-no-type": crd({"properties": {"spec": obj()}}),
    "field-no-type": field({}),
    "field-no-type-nested": field({"properties": {"y": STRING}}),
    "type-unknown": field({"type": "text"}),
    "items-missing": field({"type": "array"}),
    "items-list": field({"type": "array", "items": [STRING]}),
    "items-no-type": field({"type": "array", "items": {}}),
    "properties-and-additional": field(obj({"y": STRING}, additionalProperties=STRING)),
    "additional-false": field(obj(additionalProperties=False)),
    "additional-true": field(obj(additionalProperties=True)),
    "additional-no-type": field(obj(additionalProperties={})),
    "additional-and-properties-at-root": crd(obj(additionalProperties=STRING)),
    "pattern-properties": field(obj(patternProperties={"x": STRING})),
    "ref": field({"$ref": "#/definitions/x"}),
    "definitions": field(obj(definitions={"a": STRING})),
    "unique-items": field({"type": "array", "items": STRING, "uniqueItems": True}),
    "dependencies": field(obj(dependencies={"a": ["b"]})),
    "additional-items": field({"type": "array", "items": STRING, "additionalItems": True}),
    "id": field({"type": "string", "id": "x"}),
    "any-of-typed": field({"type": "string", "anyOf": [{"type": "string"}]}),
    "all-of-description": field({"type": "string", "allOf": [{"description": "x"}]}),
    "one-of-default": field({"type": "string", "oneOf": [{"default": "x"}]}),
    "not-nullable": field({"type": "string", "not": {"nullable": True}}),
    "any-of-unknown-property": field(obj({"y": STRING}, anyOf=[{"properties": {"z": {}}}])),
    "any-of-additional": field(obj({"y": STRING}, anyOf=[{"additionalProperties": True}])),
    "any-of-required": field(obj({"y": STRING}, anyOf=[{"required": ["y"]}])),
    "any-of-items": field(
        {"type": "array", "items": STRING, "anyOf": [{"items": {"pattern": "x"}}]}
    ),
    "any-of-preserve": field(
        obj({"y": STRING}, anyOf=[{"x-kubernetes-preserve-unknown-fields": True}])
    ),
    "int-or-string": field({"x-kubernetes-int-or-string": True}),
    "int-or-string-typed": field({"x-kubernetes-int-or-string": True, "type": "string"}),
    "int-or-string-any-of": field(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        }
    ),
    "int-or-string-all-of": field(
        {
            "x-kubernetes-int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maxLength": 3}],
        }
    ),
    "preserve": field({"x-kubernetes-preserve-unknown-fields": True}),
    "preserve-false": field({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    "preserve-string": field({"type": "string", "x-kubernetes-preserve-unknown-fields": True}),
    "embedded": field({"x-kubernetes-embedded-resource": True}),
    "embedded-object": field(obj({"spec": obj()}, **{"x-kubernetes-embedded-resource": True})),
    "embedded-preserve": field(
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        }
    ),
    "metadata-restricted": crd(
        obj({"metadata": obj({"name": {"type": "string", "maxLength": 5}})})
    ),
    "metadata-labels": crd(obj({"metadata": obj({"labels": obj(additionalProperties=STRING)})})),
    "metadata-string": crd(obj({"metadata": STRING})),
    "kind-integer": crd(obj({"kind": INTEGER})),
    "nullable": field({"type": "string", "nullable": True}),
    "nullable-no-type": field({"nullable": True}),
    "bad-pattern": field({"type": "string", "pattern": "a(b"}),
    "lookahead-pattern": field({"type": "string", "pattern": "(?=a)b"}),
    "format-unknown": field({"type": "string", "format": "color"}),
    "list-type-unknown": field({**LIST_OF_OBJECTS, "x-kubernetes-list-type": "bag"}),
    "list-type-on-string": field({"type": "string", "x-kubernetes-list-type": "set"}),
    "list-map-no-keys": field({**LIST_OF_OBJECTS, "x-kubernetes-list-type": "map"}),
    "list-map-unknown-key": field(
        {
            **LIST_OF_OBJECTS,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["z"],
        }
    ),
    "list-map-optional-key": field(
        {
            **LIST_OF_OBJECTS,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    ),
    "list-map-duplicate-key": field(
        {
            "type": "array",
            "items": obj({"k": STRING}, required=["k"]),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "k"],
        }
    ),
    "list-map-object-key": field(
        {
            "type": "array",
            "items": obj({"k": obj()}, required=["k"]),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    ),
    "list-map-of-strings": field(
        {
            "type": "array",
            "items": STRING,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    ),
    "list-map-nullable": field(
        {
            "type": "array",
            "items": obj({"k": STRING}, required=["k"], nullable=True),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    ),
    "list-keys-without-type": field({**LIST_OF_OBJECTS, "x-kubernetes-list-map-keys": ["k"]}),
    "list-set-of-objects": field({**LIST_OF_OBJECTS, "x-kubernetes-list-type": "set"}),
    "list-set-of-atomic-objects": field(
        {
            "type": "array",
            "items": obj({"k": STRING}, **{"x-kubernetes-map-type": "atomic"}),
            "x-kubernetes-list-type": "set",
        }
    ),
    "list-set-nullable": field(
        {
            "type": "array",
            "items": {"type": "string", "nullable": True},
            "x-kubernetes-list-type": "set",
        }
    ),
    "map-type-unknown": field(obj({"y": STRING}, **{"x-kubernetes-map-type": "loose"})),
    "map-type-on-string": field({"type": "string", "x-kubernetes-map-type": "atomic"}),
    "default-wrong-type": field({"type": "string", "default": 1}),
    "default-unknown-field": field(obj({"y": STRING}, default={"z": "a"})),
    "default-invalid": field({"type": "string", "maxLength": 2, "default": "abc"}),
    "default-null": field({"type": "string", "default": None}),
    "default-null-nullable": field({"type": "string", "nullable": True, "default": None}),
    "default-enum": field({"type": "string", "enum": ["a", "b"], "default": "c"}),
    "default-in-metadata": crd(
        obj({"metadata": obj({"name": {"type": "string", "default": "x"}})})
    ),
    "default-object": field(obj({"y": {"type": "string", "default": "q"}}, default={})),
    "default-required": field(obj({"y": STRING}, required=["y"], default={})),
    "enum-wrong": field({"type": "string", "enum": [1, "a"]}),
    "enum-empty": field({"type": "string", "enum": []}),
    "enum-null": field({"type": "string", "enum": ["a", None]}),
    "required-unknown": field(obj({"y": STRING}, required=["z"])),
    "required-empty": field(obj({"y": STRING}, required=[])),
    "max-length-negative": field({"type": "string", "maxLength": -1}),
    "multiple-of-zero": field({"type": "integer", "multipleOf": 0}),
    "minimum-string": field({"type": "string", "minimum": 1}),
    "long-name-property": field(obj({"$x": STRING})),
    "external-docs": field({"type": "string", "externalDocs": {"url": "x"}, "title": "t"}),
    "example": field({"type": "string", "example": {"a": 1}}),
}

RULES: dict[str, dict[str, Any]] = {
    "rule-ok": ruled(STRING, "self.startsWith('a')"),
    "rule-empty": ruled(STRING, ""),
    "rule-blank": ruled(STRING, "   "),
    "rule-syntax": ruled(STRING, "self =="),
    "rule-type": ruled(STRING, "self + 1"),
    "rule-not-bool": ruled(STRING, "self"),
    "rule-undeclared": ruled(obj({"y": STRING}), "self.z == 'a'"),
    "rule-unknown-variable": ruled(STRING, "selff == 'a'"),
    "rule-message-empty": ruled(STRING, "true", message=""),
    "rule-message-blank": ruled(STRING, "true", message="  "),
    "rule-message-newline": ruled(STRING, "true", message="a\nb"),
    "rule-multiline-no-message": ruled(STRING, "self != 'a'\n&& true"),
    "rule-message-long": ruled(STRING, "true", message="x" * 3000),
    "message-expression-ok": ruled(STRING, "true", messageExpression="'bad ' + self"),
    "message-expression-empty": ruled(STRING, "true", messageExpression=""),
    "message-expression-blank": ruled(STRING, "true", messageExpression=" "),
    "message-expression-type": ruled(STRING, "true", messageExpression="1"),
    "message-expression-syntax": ruled(STRING, "true", messageExpression="1 +"),
    "message-expression-old-self": ruled(STRING, "true", messageExpression="oldSelf"),
    "reason-unknown": ruled(STRING, "true", reason="Whatever"),
    "reason-known": ruled(STRING, "true", reason="FieldValueRequired"),
    "field-path-ok": ruled(obj({"y": STRING}), "true", fieldPath=".y"),
    "field-path-unknown": ruled(obj({"y": STRING}), "true", fieldPath=".z"),
    "field-path-syntax": ruled(obj({"y": STRING}), "true", fieldPath="y"),
    "field-path-index": ruled(
        obj({"y": {"type": "array", "items": STRING}}), "true", fieldPath=".y[0]"
    ),
    "field-path-empty": ruled(obj({"y": STRING}), "true", fieldPath=""),
    "field-path-escaped": ruled(obj({"a.b": STRING}), "true", fieldPath=".['a.b']"),
    "old-self-ok": ruled(STRING, "self == oldSelf"),
    "old-self-in-list": field(
        {
            "type": "array",
            "items": {"type": "string", "x-kubernetes-validations": rule("self == oldSelf")},
        }
    ),
    "old-self-in-map-list": field(
        {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": obj(
                {"k": STRING},
                required=["k"],
                **{"x-kubernetes-validations": rule("self.k == oldSelf.k")},
            ),
        }
    ),
    "optional-old-self": ruled(STRING, "oldSelf.hasValue() || self == 'a'", optionalOldSelf=True),
    "optional-old-self-unused": ruled(STRING, "self == 'a'", optionalOldSelf=True),
    "optional-old-self-wrong": ruled(STRING, "oldSelf == self", optionalOldSelf=True),
    "cost-nested": field(
        {
            "type": "array",
            "items": {
                "type": "array",
                "items": {
                    "type": "string",
                    "x-kubernetes-validations": rule("self.contains('a')"),
                },
            },
        }
    ),
    "cost-list": ruled({"type": "array", "items": STRING}, "self.all(x, self.exists(y, x == y))"),
    "cost-list-limited": ruled(
        {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5}},
        "self.all(x, self.exists(y, x == y))",
    ),
    "cost-unbounded-string": ruled(STRING, "self.matches('a+b+c+d+')"),
    "cost-total": field(
        obj(
            {
                f"f{n}": {
                    "type": "array",
                    "maxItems": 1000,
                    "items": {
                        "type": "string",
                        "maxLength": 1000,
                        "x-kubernetes-validations": rule("self.contains('abcdefghijk')"),
                    },
                }
                for n in range(12)
            }
        )
    ),
    "rule-on-int": ruled(INTEGER, "self > 3 && self < 5.0"),
    "rule-on-number": ruled({"type": "number"}, "self > 3.0"),
    "rule-on-number-int": ruled({"type": "number"}, "self + 3 > 3"),
    "rule-on-date": ruled(
        {"type": "string", "format": "date-time"}, "self > timestamp('2020-01-01T00:00:00Z')"
    ),
    "rule-on-duration": ruled({"type": "string", "format": "duration"}, "self < duration('1h')"),
    "rule-on-bytes": ruled({"type": "string", "format": "byte"}, "size(self) < 5"),
    "rule-on-preserve": ruled(
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "self.x == 1"
    ),
    "rule-on-int-or-string": ruled(
        {"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 1 : self != ''"
    ),
    "rule-escaped": ruled(
        obj({"a-b": STRING, "c.d": STRING, "e__f": STRING, "namespace": STRING, "a/b": STRING}),
        "self.a__dash__b == self.c__dot__d && self.e__underscores__f == self.__namespace__"
        " && self.a__slash__b == ''",
    ),
    "rule-at-root": crd(
        {
            **schema_of({"y": STRING}),
            "x-kubernetes-validations": rule("self.metadata.name.startsWith('w')"),
        }
    ),
    "rule-at-root-labels": crd(
        {
            **schema_of({"y": STRING}),
            "x-kubernetes-validations": rule("self.metadata.labels.size() > 0"),
        }
    ),
    "rule-at-root-api-version": crd(
        {
            **schema_of({"y": STRING}),
            "x-kubernetes-validations": rule("self.kind == 'Widget' && self.apiVersion != ''"),
        }
    ),
    "rule-in-any-of": field(
        {"type": "string", "anyOf": [{"x-kubernetes-validations": rule("true")}]}
    ),
    "rule-no-type": field(
        {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": rule("true")}
    ),
    "rule-duplicate": field({**STRING, "x-kubernetes-validations": rule("true") * 2}),
    "rule-libraries": ruled(
        STRING,
        "isURL(self) || quantity('1Gi').isGreaterThan(quantity('1Mi')) || isIP(self)"
        " || self.find('[0-9]+') != '' || [1, 2].sum() == 3",
    ),
}

REQUESTS = {**NAMES, **COLUMNS, **SCHEMAS, **RULES}
