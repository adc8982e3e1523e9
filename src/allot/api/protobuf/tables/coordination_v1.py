"""Messages of coordination.v1; written by scripts/protobuf_tables.py."""

TABLE = """
Lease kind
  1 metadata meta.v1.ObjectMeta
  2 spec LeaseSpec

LeaseList kind
  1 metadata meta.v1.ListMeta
  2 items []Lease

LeaseSpec
  1 holderIdentity *string?
  2 leaseDurationSeconds *int32?
  3 acquireTime *microtime?
  4 renewTime *microtime?
  5 leaseTransitions *int32?
  6 strategy *string?
  7 preferredHolder *string?
"""
