"""Messages of rbac.v1; written by scripts/protobuf_tables.py."""

TABLE = """
AggregationRule
  1 clusterRoleSelectors []meta.v1.LabelSelector?

ClusterRole kind
  1 metadata meta.v1.ObjectMeta
  2 rules []PolicyRule
  3 aggregationRule *AggregationRule?

ClusterRoleBinding kind
  1 metadata meta.v1.ObjectMeta
  2 subjects []Subject?
  3 roleRef RoleRef

ClusterRoleBindingList kind
  1 metadata meta.v1.ListMeta
  2 items []ClusterRoleBinding

ClusterRoleList kind
  1 metadata meta.v1.ListMeta
  2 items []ClusterRole

PolicyRule
  1 verbs []string
  2 apiGroups []string?
  3 resources []string?
  4 resourceNames []string?
  5 nonResourceURLs []string?

Role kind
  1 metadata meta.v1.ObjectMeta
  2 rules []PolicyRule

RoleBinding kind
  1 metadata meta.v1.ObjectMeta
  2 subjects []Subject?
  3 roleRef RoleRef

RoleBindingList kind
  1 metadata meta.v1.ListMeta
  2 items []RoleBinding

RoleList kind
  1 metadata meta.v1.ListMeta
  2 items []Role

RoleRef
  1 apiGroup string
  2 kind string
  3 name string

Subject
  1 kind string
  2 apiGroup string?
  3 name string
  4 namespace string?
"""
