"""Messages of apidiscovery.v2beta1; written by scripts/protobuf_tables.py."""

TABLE = """
APIGroupDiscovery kind
  1 metadata meta.v1.ObjectMeta
  2 versions []APIVersionDiscovery?

APIGroupDiscoveryList kind
  1 metadata meta.v1.ListMeta
  2 items []APIGroupDiscovery

APIResourceDiscovery
  1 resource string
  2 responseKind *meta.v1.GroupVersionKind?
  3 scope string
  4 singularResource string
  5 verbs []string
  6 shortNames []string?
  7 categories []string?
  8 subresources []APISubresourceDiscovery?

APISubresourceDiscovery
  1 subresource string
  2 responseKind *meta.v1.GroupVersionKind?
  3 acceptedTypes []meta.v1.GroupVersionKind?
  4 verbs []string

APIVersionDiscovery
  1 version string
  2 resources []APIResourceDiscovery?
  3 freshness string?
"""
