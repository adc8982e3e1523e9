"""Validation of objects: object in, field errors out. One module per kind or shared part.

`resource_claim`, `resource_slice`, `device_class` and the other resource.k8s.io kinds are validated in full, pods in
their DRA parts, core kinds as far as allot uses them.

Kubernetes has two families of rules, hand-written and declared on the types, with slightly different
messages. Where both apply, the declared rule reports; an error records its family, because declared rules
name the fields of the request's version and hand-written ones those of v1.
"""
