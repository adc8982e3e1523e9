"""Managed fields: field sets, typed merge, and server-side apply. Independent of kinds, without I/O.

`field_sets` is the algebra of FieldsV1. `value_types` derives ownership rules from a schema, and
`comparison`, `merging` and `removal` apply them to values. `updater` computes the owners after one
write, `field_manager` the resulting `metadata.managedFields`, from what `updated_objects` finds to differ.
"""
