"""Messages of discovery.v1; written by scripts/protobuf_tables.py."""

TABLE = """
Endpoint
  1 addresses []string
  2 conditions EndpointConditions
  3 hostname *string?
  4 targetRef *core.v1.ObjectReference?
  5 deprecatedTopology {}string?
  6 nodeName *string?
  7 zone *string?
  8 hints *EndpointHints?

EndpointConditions
  1 ready *bool?
  2 serving *bool?
  3 terminating *bool?

EndpointHints
  1 forZones []ForZone?
  2 forNodes []ForNode?

EndpointPort
  1 name *string?
  2 protocol *string?
  3 port *int32?
  4 appProtocol *string?

EndpointSlice kind
  1 metadata meta.v1.ObjectMeta
  2 endpoints []Endpoint
  3 ports []EndpointPort
  4 addressType string

EndpointSliceList kind
  1 metadata meta.v1.ListMeta
  2 items []EndpointSlice

ForNode
  1 name string

ForZone
  1 name string
"""
