"""Who manages which field: field sets, typed merge, and server-side apply. Free of kinds and of I/O.

`field_sets` is the algebra of FieldsV1. `value_types` says what a schema means for ownership.
`comparison`, `merging` and `removal` walk values by it. `updater` decides about one write,
`field_manager` turns that into `metadata.managedFields`.
"""
