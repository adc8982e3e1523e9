"""Messages of flowcontrol.v1; written by scripts/protobuf_tables.py."""

TABLE = """
ExemptPriorityLevelConfiguration
  1 nominalConcurrencyShares *int32?
  2 lendablePercent *int32?

FlowDistinguisherMethod
  1 type string

FlowSchema kind
  1 metadata meta.v1.ObjectMeta
  2 spec FlowSchemaSpec
  3 status FlowSchemaStatus

FlowSchemaCondition
  1 type string?
  2 status string?
  3 lastTransitionTime time
  4 reason string?
  5 message string?

FlowSchemaList kind
  1 metadata meta.v1.ListMeta
  2 items []FlowSchema

FlowSchemaSpec
  1 priorityLevelConfiguration PriorityLevelConfigurationReference
  2 matchingPrecedence int32
  3 distinguisherMethod *FlowDistinguisherMethod?
  4 rules []PolicyRulesWithSubjects?

FlowSchemaStatus
  1 conditions []FlowSchemaCondition?

GroupSubject
  1 name string

LimitResponse
  1 type string
  2 queuing *QueuingConfiguration?

LimitedPriorityLevelConfiguration
  1 nominalConcurrencyShares *int32
  2 limitResponse LimitResponse
  3 lendablePercent *int32?
  4 borrowingLimitPercent *int32?

NonResourcePolicyRule
  1 verbs []string
  6 nonResourceURLs []string

PolicyRulesWithSubjects
  1 subjects []Subject
  2 resourceRules []ResourcePolicyRule?
  3 nonResourceRules []NonResourcePolicyRule?

PriorityLevelConfiguration kind
  1 metadata meta.v1.ObjectMeta
  2 spec PriorityLevelConfigurationSpec
  3 status PriorityLevelConfigurationStatus

PriorityLevelConfigurationCondition
  1 type string?
  2 status string?
  3 lastTransitionTime time
  4 reason string?
  5 message string?

PriorityLevelConfigurationList kind
  1 metadata meta.v1.ListMeta
  2 items []PriorityLevelConfiguration

PriorityLevelConfigurationReference
  1 name string

PriorityLevelConfigurationSpec
  1 type string
  2 limited *LimitedPriorityLevelConfiguration?
  3 exempt *ExemptPriorityLevelConfiguration?

PriorityLevelConfigurationStatus
  1 conditions []PriorityLevelConfigurationCondition?

QueuingConfiguration
  1 queues int32
  2 handSize int32
  3 queueLengthLimit int32

ResourcePolicyRule
  1 verbs []string
  2 apiGroups []string
  3 resources []string
  4 clusterScope bool?
  5 namespaces []string

ServiceAccountSubject
  1 namespace string
  2 name string

Subject
  1 kind string
  2 user *UserSubject?
  3 group *GroupSubject?
  4 serviceAccount *ServiceAccountSubject?

UserSubject
  1 name string
"""
