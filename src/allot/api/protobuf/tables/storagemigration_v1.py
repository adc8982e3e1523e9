"""Messages of storagemigration.v1; written by scripts/protobuf_tables.py."""

TABLE = """
StorageVersionMigration kind
  1 metadata meta.v1.ObjectMeta
  2 spec StorageVersionMigrationSpec
  3 status StorageVersionMigrationStatus

StorageVersionMigrationList kind
  1 metadata meta.v1.ListMeta
  2 items []StorageVersionMigration

StorageVersionMigrationSpec
  1 resource meta.v1.GroupResource

StorageVersionMigrationStatus
  1 conditions []meta.v1.Condition?
  2 resourceVersion string?
"""
