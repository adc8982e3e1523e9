"""Messages of authorization.v1; written by scripts/protobuf_tables.py."""

TABLE = """
FieldSelectorAttributes
  1 rawSelector string?
  2 requirements []meta.v1.FieldSelectorRequirement?

LabelSelectorAttributes
  1 rawSelector string?
  2 requirements []meta.v1.LabelSelectorRequirement?

LocalSubjectAccessReview kind
  1 metadata meta.v1.ObjectMeta
  2 spec SubjectAccessReviewSpec
  3 status SubjectAccessReviewStatus

NonResourceAttributes
  1 path string?
  2 verb string?

NonResourceRule
  1 verbs []string
  2 nonResourceURLs []string?

ResourceAttributes
  1 namespace string?
  2 verb string?
  3 group string?
  4 version string?
  5 resource string?
  6 subresource string?
  7 name string?
  8 fieldSelector *FieldSelectorAttributes?
  9 labelSelector *LabelSelectorAttributes?

ResourceRule
  1 verbs []string
  2 apiGroups []string?
  3 resources []string?
  4 resourceNames []string?

SelfSubjectAccessReview kind
  1 metadata meta.v1.ObjectMeta
  2 spec SelfSubjectAccessReviewSpec
  3 status SubjectAccessReviewStatus

SelfSubjectAccessReviewSpec
  1 resourceAttributes *ResourceAttributes?
  2 nonResourceAttributes *NonResourceAttributes?

SelfSubjectRulesReview kind
  1 metadata meta.v1.ObjectMeta
  2 spec SelfSubjectRulesReviewSpec
  3 status SubjectRulesReviewStatus

SelfSubjectRulesReviewSpec
  1 namespace string?

SubjectAccessReview kind
  1 metadata meta.v1.ObjectMeta
  2 spec SubjectAccessReviewSpec
  3 status SubjectAccessReviewStatus

SubjectAccessReviewSpec
  1 resourceAttributes *ResourceAttributes?
  2 nonResourceAttributes *NonResourceAttributes?
  3 user string?
  4 groups []string?
  5 extra {}strings?
  6 uid string?

SubjectAccessReviewStatus
  1 allowed bool
  2 reason string?
  3 evaluationError string?
  4 denied bool?

SubjectRulesReviewStatus
  1 resourceRules []ResourceRule
  2 nonResourceRules []NonResourceRule
  3 incomplete bool
  4 evaluationError string?
"""
