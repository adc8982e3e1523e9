"""Messages of admissionregistration.v1; written by scripts/protobuf_tables.py."""

TABLE = """
ApplyConfiguration
  1 expression string?

AuditAnnotation
  1 key string
  2 valueExpression string

ExpressionWarning
  2 fieldRef string
  3 warning string

JSONPatch
  1 expression string?

MatchCondition
  1 name string
  2 expression string

MatchResources
  1 namespaceSelector *meta.v1.LabelSelector?
  2 objectSelector *meta.v1.LabelSelector?
  3 resourceRules []NamedRuleWithOperations?
  4 excludeResourceRules []NamedRuleWithOperations?
  7 matchPolicy *string?

MutatingAdmissionPolicy kind
  1 metadata meta.v1.ObjectMeta
  2 spec MutatingAdmissionPolicySpec

MutatingAdmissionPolicyBinding kind
  1 metadata meta.v1.ObjectMeta
  2 spec MutatingAdmissionPolicyBindingSpec

MutatingAdmissionPolicyBindingList kind
  1 metadata meta.v1.ListMeta
  2 items []MutatingAdmissionPolicyBinding

MutatingAdmissionPolicyBindingSpec
  1 policyName string?
  2 paramRef *ParamRef?
  3 matchResources *MatchResources?

MutatingAdmissionPolicyList kind
  1 metadata meta.v1.ListMeta
  2 items []MutatingAdmissionPolicy

MutatingAdmissionPolicySpec
  1 paramKind *ParamKind?
  2 matchConstraints *MatchResources?
  3 variables []Variable?
  4 mutations []Mutation?
  5 failurePolicy *string?
  6 matchConditions []MatchCondition?
  7 reinvocationPolicy string?

MutatingWebhook
  1 name string
  2 clientConfig WebhookClientConfig
  3 rules []RuleWithOperations?
  4 failurePolicy *string?
  5 namespaceSelector *meta.v1.LabelSelector?
  6 sideEffects *string
  7 timeoutSeconds *int32?
  8 admissionReviewVersions []string
  9 matchPolicy *string?
  10 reinvocationPolicy *string?
  11 objectSelector *meta.v1.LabelSelector?
  12 matchConditions []MatchCondition?

MutatingWebhookConfiguration kind
  1 metadata meta.v1.ObjectMeta
  2 webhooks []MutatingWebhook?

MutatingWebhookConfigurationList kind
  1 metadata meta.v1.ListMeta
  2 items []MutatingWebhookConfiguration

Mutation
  2 patchType string
  3 applyConfiguration *ApplyConfiguration?
  4 jsonPatch *JSONPatch?

NamedRuleWithOperations
  1 resourceNames []string?
  2 - RuleWithOperations

ParamKind
  1 apiVersion string?
  2 kind string?

ParamRef
  1 name string?
  2 namespace string?
  3 selector *meta.v1.LabelSelector?
  4 parameterNotFoundAction *string?

Rule
  1 apiGroups []string?
  2 apiVersions []string?
  3 resources []string?
  4 scope *string?

RuleWithOperations
  1 operations []string?
  2 - Rule

ServiceReference
  1 namespace string
  2 name string
  3 path *string?
  4 port *int32?

TypeChecking
  1 expressionWarnings []ExpressionWarning?

ValidatingAdmissionPolicy kind
  1 metadata meta.v1.ObjectMeta
  2 spec ValidatingAdmissionPolicySpec
  3 status ValidatingAdmissionPolicyStatus

ValidatingAdmissionPolicyBinding kind
  1 metadata meta.v1.ObjectMeta
  2 spec ValidatingAdmissionPolicyBindingSpec

ValidatingAdmissionPolicyBindingList kind
  1 metadata meta.v1.ListMeta
  2 items []ValidatingAdmissionPolicyBinding

ValidatingAdmissionPolicyBindingSpec
  1 policyName string?
  2 paramRef *ParamRef?
  3 matchResources *MatchResources?
  4 validationActions []string?

ValidatingAdmissionPolicyList kind
  1 metadata meta.v1.ListMeta
  2 items []ValidatingAdmissionPolicy

ValidatingAdmissionPolicySpec
  1 paramKind *ParamKind?
  2 matchConstraints *MatchResources?
  3 validations []Validation?
  4 failurePolicy *string?
  5 auditAnnotations []AuditAnnotation?
  6 matchConditions []MatchCondition?
  7 variables []Variable?

ValidatingAdmissionPolicyStatus
  1 observedGeneration int64?
  2 typeChecking *TypeChecking?
  3 conditions []meta.v1.Condition?

ValidatingWebhook
  1 name string
  2 clientConfig WebhookClientConfig
  3 rules []RuleWithOperations?
  4 failurePolicy *string?
  5 namespaceSelector *meta.v1.LabelSelector?
  6 sideEffects *string
  7 timeoutSeconds *int32?
  8 admissionReviewVersions []string
  9 matchPolicy *string?
  10 objectSelector *meta.v1.LabelSelector?
  11 matchConditions []MatchCondition?

ValidatingWebhookConfiguration kind
  1 metadata meta.v1.ObjectMeta
  2 webhooks []ValidatingWebhook?

ValidatingWebhookConfigurationList kind
  1 metadata meta.v1.ListMeta
  2 items []ValidatingWebhookConfiguration

Validation
  1 expression string
  2 message string?
  3 reason *string?
  4 messageExpression string?

Variable
  1 name string
  2 expression string

WebhookClientConfig
  1 service *ServiceReference?
  2 caBundle bytes?
  3 url *string?
"""
