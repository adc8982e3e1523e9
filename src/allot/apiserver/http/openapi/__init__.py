"""OpenAPI v3: what kubectl reads before it creates, applies, edits or explains anything.

`documents` has the index and one document per group and version, made from the table of resources
(`allot.apiserver.kinds.resources`), the types (`allot.apiserver.schemas`) and our descriptions (`texts/`).
"""
