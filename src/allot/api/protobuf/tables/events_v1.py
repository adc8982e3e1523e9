"""Messages of events.v1; written by scripts/protobuf_tables.py."""

TABLE = """
Event kind
  1 metadata meta.v1.ObjectMeta
  2 eventTime microtime
  3 series *EventSeries?
  4 reportingController string?
  5 reportingInstance string?
  6 action string?
  7 reason string?
  8 regarding core.v1.ObjectReference
  9 related *core.v1.ObjectReference?
  10 note string?
  11 type string?
  12 deprecatedSource core.v1.EventSource
  13 deprecatedFirstTimestamp time
  14 deprecatedLastTimestamp time
  15 deprecatedCount int32?

EventList kind
  1 metadata meta.v1.ListMeta
  2 items []Event

EventSeries
  1 count int32
  2 lastObservedTime microtime
"""
