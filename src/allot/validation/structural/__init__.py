"""Structural schemas: the OpenAPI schemas of custom resources, and what follows from them for objects.

schemas           a schema, compiled from its JSON
structure_rules   whether a schema is structural, so that it can prune and default
defaulting        missing fields that have a default
pruning           fields that the schema does not know
values            types, bounds, formats and combinations of a value
formats           the formats of strings
list_types        unique items of sets and maps
embedded          objects inside objects
expressions       validation rules in CEL: compiled, estimated and evaluated
correlation       which old value belongs to a new one
"""
