"""Messages of node.v1; written by scripts/protobuf_tables.py."""

TABLE = """
Overhead
  1 podFixed {}quantity?

RuntimeClass kind
  1 metadata meta.v1.ObjectMeta
  2 handler string
  3 overhead *Overhead?
  4 scheduling *Scheduling?

RuntimeClassList kind
  1 metadata meta.v1.ListMeta
  2 items []RuntimeClass

Scheduling
  1 nodeSelector {}string?
  2 tolerations []core.v1.Toleration?
"""
