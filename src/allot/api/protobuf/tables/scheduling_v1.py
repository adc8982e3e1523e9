"""Messages of scheduling.v1; written by scripts/protobuf_tables.py."""

TABLE = """
PriorityClass kind
  1 metadata meta.v1.ObjectMeta
  2 value int32
  3 globalDefault bool?
  4 description string?
  5 preemptionPolicy *string?

PriorityClassList kind
  1 metadata meta.v1.ListMeta
  2 items []PriorityClass
"""
